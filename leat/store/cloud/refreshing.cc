#include "leat/store/cloud/refreshing.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "leat/base/errors.h"
#include "leat/base/units.h"
#include "leat/runtime/log.h"
#include "leat/store/cloud/expiration.h"
#include "leat/store/cloud/node_turn.h"
#include "leat/store/reply_box.h"

namespace leat {
namespace {

constexpr Nanoseconds kFirstPause = std::chrono::milliseconds(500);
constexpr Nanoseconds kMostPause = std::chrono::seconds(30);
/// A replacement of refused credentials that is itself refused within this time
/// never was good. One that is refused later was rotated, as they were.
constexpr Nanoseconds kTrial = std::chrono::minutes(1);
/// A fetch of another rank takes no longer, or is stuck.
constexpr Nanoseconds kMostTurnWait = std::chrono::seconds(10);

Error cancelled() {
  return Error(ErrorCode::kCancelled,
               "cancelled while waiting for credentials");
}

bool are_same(const Credentials& a, const Credentials& b) {
  return a.access_key_id == b.access_key_id &&
         a.secret_access_key == b.secret_access_key &&
         a.session_token == b.session_token && a.bearer_token == b.bearer_token;
}

}  // namespace

RefreshingCredentials::RefreshingCredentials(Options options)
    : options_(std::move(options)) {
  if (!options_.initial) return;
  const MutexLock lock(mutex_);
  (void)adopt(CredentialAnswer{options_.initial});
}

RefreshingCredentials::~RefreshingCredentials() {
  closing_.request_stop();
  std::unique_ptr<Threads> threads;
  {
    const MutexLock lock(mutex_);
    threads = std::move(threads_);
  }
  threads.reset();  // Joins, without the lock that its tasks want.
  std::map<std::uint64_t, WaiterRef> waiters;
  {
    const MutexLock lock(mutex_);
    waiters.swap(waiters_);
  }
  for (const auto& [id, waiter] : waiters) answer(waiter, cancelled());
}

bool RefreshingCredentials::is_usable(TimePoint now) const {
  return held_.keys && (!held_.unusable_at || now < *held_.unusable_at);
}

CredentialsRef RefreshingCredentials::current() {
  const TimePoint now = options_.clock->now();
  const MutexLock lock(mutex_);
  if (!is_usable(now)) return nullptr;
  if (held_.renew_at && now >= *held_.renew_at) start_fetch(now);
  return held_.keys;
}

void RefreshingCredentials::when_ready(const std::stop_token& stop,
                                       Ready ready) {
  if (CredentialsRef keys = current()) return ready(std::move(keys));
  auto waiter = std::make_shared<Waiter>();
  std::uint64_t id = 0;
  {
    const MutexLock lock(mutex_);
    id = next_waiter_++;
  }
  // Before the waiter can be found, since its finder ends it. A stop that comes
  // before that is seen below.
  waiter->on_stop.emplace(stop, [this, id] { hear_stop(id); });
  const TimePoint now = options_.clock->now();
  Result<CredentialsRef> at_once = cancelled();
  {
    const MutexLock lock(mutex_);
    if (is_usable(now)) {
      at_once = held_.keys;
    } else if (!options_.provider) {
      at_once = denied("no credentials");
    } else if (failure_ && now < not_before_) {
      at_once = *failure_;
    } else if (!stop.stop_requested()) {
      waiter->ready = std::move(ready);
      waiters_.emplace(id, waiter);
      start_fetch(now);
      return;
    }
  }
  waiter->on_stop.reset();
  ready(std::move(at_once));
}

Result<CredentialsRef> RefreshingCredentials::wait(
    const std::stop_token& stop) {
  ReplyBox<Result<CredentialsRef>> reply;
  when_ready(stop, [&reply](Result<CredentialsRef> result) {
    reply.put(std::move(result));
  });
  return reply.take();
}

bool RefreshingCredentials::reject(const CredentialsRef& used) {
  const TimePoint now = options_.clock->now();
  const MutexLock lock(mutex_);
  if (used != held_.keys) return true;
  if (!options_.provider) return false;
  const bool was_due = held_.renew_at && now >= *held_.renew_at;
  const bool is_on_trial =
      held_.is_replacement && now - held_.fetched_at < kTrial;
  if (is_on_trial && !was_due) return false;
  refused_ = std::exchange(held_.keys, nullptr);
  not_before_ = now;
  failure_.reset();
  start_fetch(now);
  return true;
}

void RefreshingCredentials::start_fetch(TimePoint now) {
  if (is_fetching_ || !options_.provider || now < not_before_) return;
  if (closing_.stop_requested()) return;
  is_fetching_ = true;
  if (!threads_) threads_ = std::make_unique<Threads>();
  threads_->fetcher.submit(0, [this](std::size_t) { fetch(); });
}

void RefreshingCredentials::fetch() {
  const std::stop_token stop = closing_.get_token();
  Result<CredentialAnswer> got = cancelled();
  {
    const NodeTurn turn =
        NodeTurn::wait(options_.turn_path, kMostTurnWait, stop);
    if (!stop.stop_requested()) got = options_.provider->fetch(stop);
  }
  Result<CredentialsRef> result = cancelled();
  std::map<std::uint64_t, WaiterRef> waiters;
  {
    const MutexLock lock(mutex_);
    result = adopt(std::move(got));
    is_fetching_ = false;
    waiters.swap(waiters_);
  }
  for (const auto& [id, waiter] : waiters) answer(waiter, result);
}

Result<CredentialsRef> RefreshingCredentials::adopt(
    Result<CredentialAnswer> answer) {
  if (!answer) return note_failure(std::move(answer).error());
  if (!answer->found) {
    return note_failure(denied(answer->why_not));
  }
  TimedCredentials& found = *answer->found;
  if (refused_ && are_same(found.keys, *refused_)) {
    return note_failure(
        denied("the server no longer takes these credentials, and asked again, "
               "the place they come from gives the same; renew them there"));
  }
  Held held;
  held.fetched_at = options_.clock->now();
  if (found.expires_at) {
    const Nanoseconds lifetime = *found.expires_at - held.fetched_at;
    if (lifetime <= Nanoseconds(0)) {
      return note_failure(
          unavailable("the credentials that were given ended {} ago; check "
                      "this machine's clock",
                      format_duration(-lifetime)));
    }
    const RefreshTimes times = refresh_times(lifetime);
    held.renew_at = *found.expires_at - times.renew_before;
    held.unusable_at = *found.expires_at - times.unusable_before;
  }
  held.keys = std::make_shared<const Credentials>(std::move(found.keys));
  held.is_replacement = refused_ != nullptr;
  held_ = std::move(held);
  refused_.reset();
  failure_.reset();
  pause_ = Nanoseconds(0);
  return held_.keys;
}

Result<CredentialsRef> RefreshingCredentials::note_failure(Error error) {
  const TimePoint now = options_.clock->now();
  if (error.code() != ErrorCode::kCancelled && is_usable(now) && !failure_) {
    log_warning(fmt::format(
        "credentials could not be renewed and are good for another {}: {}",
        format_duration(*held_.unusable_at - now), error.message()));
  }
  pause_ = std::clamp(pause_ * 2, kFirstPause, kMostPause);
  not_before_ = now + pause_;
  failure_ = error;
  return error;
}

/// On whichever thread fires the stop: `ready` must not run inside that.
void RefreshingCredentials::hear_stop(std::uint64_t waiter) {
  const MutexLock lock(mutex_);
  if (!threads_ || !waiters_.contains(waiter)) return;
  threads_->timers.after(Nanoseconds(0), [this, waiter] { cancel(waiter); });
}

void RefreshingCredentials::cancel(std::uint64_t waiter) {
  WaiterRef found;
  {
    const MutexLock lock(mutex_);
    const auto at = waiters_.find(waiter);
    if (at == waiters_.end()) return;
    found = std::move(at->second);
    waiters_.erase(at);
  }
  answer(found, cancelled());
}

void RefreshingCredentials::answer(const WaiterRef& waiter,
                                   Result<CredentialsRef> result) {
  // Waits for a hear_stop() that is running. After `ready` this may be gone.
  waiter->on_stop.reset();
  const Ready ready = std::move(waiter->ready);
  ready(std::move(result));
}

std::unique_ptr<RefreshingCredentials> keep_credentials(
    const std::optional<Credentials>& known,
    const std::shared_ptr<CredentialProvider>& provider,
    const std::string& turn_path) {
  if (!known && !provider) return nullptr;
  RefreshingCredentials::Options options;
  if (known) options.initial = TimedCredentials{*known};
  options.provider = provider;
  options.turn_path = turn_path;
  return std::make_unique<RefreshingCredentials>(std::move(options));
}

}  // namespace leat
