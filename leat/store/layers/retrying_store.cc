#include "leat/store/layers/retrying_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>
#include <vector>

namespace leat {
namespace {

Error not_sent_again(const Error& last) {
  return Error(ErrorCode::kCancelled,
               "cancelled, and not sent again after: " + last.message());
}

/// "There is no such object" is an answer too.
template <class T>
bool is_answer(const Result<T>& result) {
  return result || (!retryable(result.error().code()) &&
                    result.error().code() != ErrorCode::kCancelled);
}

std::string words_for(const Store& store, const EndpointNotes* notes) {
  const std::string url = store.url_of("");
  if (notes == nullptr || notes->endpoint.empty()) return url;
  return fmt::format("{} at {}", url, notes->endpoint);
}

constexpr std::size_t kWokenByOne = 2;

/// Waits until the time is up or `stop` fires.
void wait(Nanoseconds how_long, const std::stop_token& stop) {
  Mutex mutex;
  CondVar stopped;
  MutexLock lock(mutex);
  stopped.wait_for(lock, stop, how_long, [] { return false; });
}

}  // namespace

/// One read from read() until its `done`.
struct RetryingStore::Flight {
  using OnStop = std::stop_callback<std::function<void()>>;

  ReadRequest request;
  std::stop_token stop;
  ReadDone done;
  RetryJudgement::Trouble trouble;
  Result<void> last;
  // Guarded by the store's mutex: it is among the sleepers.
  std::optional<Flights::iterator> asleep;

  // The timer of the back-off, if one is on.
  Mutex mutex;
  TimerQueue::Id timer LEAT_GUARDED_BY(mutex) = 0;
  TimePoint not_before LEAT_GUARDED_BY(mutex);
  TimePoint until LEAT_GUARDED_BY(mutex);
  std::optional<OnStop> on_stop;
  std::optional<OnStop> on_close;
};

RetryingStore::RetryingStore(std::unique_ptr<Store> inner, RetryOptions options,
                             std::uint64_t seed, Metrics* metrics,
                             std::shared_ptr<const EndpointNotes> notes,
                             std::function<TimePoint()> not_before)
    : StoreWrapper(std::move(inner)),
      judgement_(options, seed, notes, std::move(not_before)),
      metrics_(metrics),
      timers_("leat-retry") {
  silence_.emplace(Silence::Options{.name = words_for(*inner_, notes.get()),
                                    .max_attempts = options.max_attempts,
                                    .patience = options.patience,
                                    .say_every = options.say_every,
                                    .say = {},
                                    .notes = std::move(notes)},
                   timers_);
}

RetryingStore::~RetryingStore() {
  closing_.request_stop();
  MutexLock lock(mutex_);
  while (flights_ != 0) changed_.wait(lock);
}

void RetryingStore::read(ReadRequest request, std::stop_token stop,
                         ReadDone done) {
  auto flight = std::make_shared<Flight>();
  flight->request = std::move(request);
  flight->stop = std::move(stop);
  flight->done = std::move(done);
  flight->trouble.began = clock_.now();
  {
    const MutexLock lock(mutex_);
    ++flights_;
  }
  silence_->began();
  send(flight);
}

void RetryingStore::send(const FlightRef& flight) {
  ReadRequest request = flight->request;
  request.attempt = flight->trouble.attempts_made++;
  inner_->read(
      std::move(request), flight->stop,
      [this, flight](Result<void> result) { hear(flight, std::move(result)); });
}

void RetryingStore::hear(const FlightRef& flight, Result<void> result) {
  if (result) {
    judgement_.has_read();
    return finish(flight, std::move(result));
  }
  RetryJudgement::Trouble& trouble = flight->trouble;
  if (trouble.attempts_made == 1) trouble.failed = clock_.now();
  if (!judgement_.worth_another(result.error(), trouble)) {
    return finish(flight,
                  judgement_.given_up(std::move(result).error(), trouble));
  }
  if (flight->stop.stop_requested() || closing_.stop_requested()) {
    return finish(flight, not_sent_again(result.error()));
  }
  silence_->failed(result.error(), trouble.attempts_made);
  flight->last = std::move(result);
  back_off(flight);
}

void RetryingStore::back_off(const FlightRef& flight) {
  const TimePoint now = clock_.now();
  const TimePoint from =
      judgement_.asked_wait(flight->last.error(), flight->trouble, now);
  // Its turn may come long after its patience has ended.
  const TimePoint until = std::min(
      next_try(flight->trouble, now, from),
      std::max(now, judgement_.end_of(flight->last.error(), flight->trouble)));
  if (flight->request.observer != nullptr) {
    flight->request.observer->backs_off(now, until);
  }
  {
    const MutexLock lock(flight->mutex);
    flight->timer = 0;
    flight->not_before = from;
    flight->until = until;
  }
  if (until - from > judgement_.options().lone_backoff) {
    const MutexLock lock(mutex_);
    flight->asleep = sleepers_.insert(sleepers_.end(), flight);
  }
  // These may call wake() at once, or on another thread from now on. They own
  // the flight and the flight owns them, until go_on() resets them.
  const auto end = [this, flight] { wake(flight, Wake::kToEnd); };
  flight->on_stop.emplace(flight->stop, end);
  flight->on_close.emplace(closing_.get_token(), end);
  const MutexLock lock(flight->mutex);
  flight->timer = timers_.at(flight->until, [this, flight] { go_on(flight); });
}

void RetryingStore::wake(const FlightRef& flight, Wake why) {
  const MutexLock lock(flight->mutex);
  TimePoint at = clock_.now();
  if (why == Wake::kToTry) at = std::max(at, flight->not_before);
  if (at >= flight->until) return;
  flight->until = at;
  // Not here: `done` must not run inside somebody's request_stop().
  if (flight->timer != 0 && timers_.cancel(flight->timer)) {
    flight->timer = timers_.at(at, [this, flight] { go_on(flight); });
  }
}

void RetryingStore::go_on(const FlightRef& flight) {
  {
    // back_off() may still be on its last lines.
    const MutexLock lock(flight->mutex);
  }
  {
    const MutexLock lock(mutex_);
    if (flight->asleep) sleepers_.erase(*flight->asleep);
    flight->asleep.reset();
  }
  // Wait for a wake() that is running, so no lock is held here.
  flight->on_stop.reset();
  flight->on_close.reset();
  if (flight->stop.stop_requested() || closing_.stop_requested()) {
    return finish(flight, not_sent_again(flight->last.error()));
  }
  if (judgement_.is_hopeless(flight->last.error(), flight->trouble)) {
    Error last = flight->last.error();
    return finish(flight,
                  judgement_.given_up(std::move(last), flight->trouble));
  }
  if (metrics_ != nullptr) metrics_->add(Metric::kStoreRetries, 1);
  send(flight);
}

void RetryingStore::finish(const FlightRef& flight, Result<void> result) {
  ReadDone done = std::move(flight->done);
  const bool is_good = is_answer(result);
  silence_->ended(is_good);
  if (is_good) answered();
  {
    const MutexLock lock(mutex_);
    --flights_;
    changed_.notify_all();
  }
  done(std::move(result));  // After this the store may be gone.
}

/// The store answers: it may answer those that sleep too.
void RetryingStore::answered() {
  judgement_.answered();
  std::vector<FlightRef> woken;
  {
    const MutexLock lock(mutex_);
    while (!sleepers_.empty() && woken.size() < kWokenByOne) {
      woken.push_back(std::move(sleepers_.front()));
      sleepers_.pop_front();
      woken.back()->asleep.reset();
    }
  }
  for (const FlightRef& flight : woken) wake(flight, Wake::kToTry);
}

TimePoint RetryingStore::next_try(const RetryJudgement::Trouble& trouble,
                                  TimePoint now, TimePoint from) {
  std::size_t flights = 0;
  {
    const MutexLock lock(mutex_);
    flights = flights_;
  }
  const TimePoint until =
      judgement_.next_try(trouble.attempts_made, flights, now, from);
  if (metrics_ != nullptr) {
    metrics_->add(Metric::kStoreBackoffNanoseconds, (until - now).count());
  }
  return until;
}

template <class Call>
auto RetryingStore::call_again(Call call, const std::stop_token& stop)
    -> decltype(call()) {
  silence_->began();
  auto result = try_again(call, stop);
  silence_->ended(is_answer(result));
  return result;
}

template <class Call>
auto RetryingStore::try_again(Call call, const std::stop_token& stop)
    -> decltype(call()) {
  RetryJudgement::Trouble trouble{.began = clock_.now()};
  while (true) {
    auto result = call();
    if (is_answer(result)) {
      answered();
      return result;
    }
    const TimePoint now = clock_.now();
    if (++trouble.attempts_made == 1) trouble.failed = now;
    if (!judgement_.worth_another(result.error(), trouble)) {
      return judgement_.given_up(std::move(result).error(), trouble);
    }
    silence_->failed(result.error(), trouble.attempts_made);
    const TimePoint from = judgement_.asked_wait(result.error(), trouble, now);
    const TimePoint until =
        std::min(next_try(trouble, now, from),
                 judgement_.end_of(result.error(), trouble));
    wait(until - now, stop);
    if (stop.stop_requested()) return not_sent_again(result.error());
    if (metrics_ != nullptr) metrics_->add(Metric::kStoreRetries, 1);
  }
}

Result<ListPage> RetryingStore::list(const ListRequest& request,
                                     std::stop_token stop) {
  return call_again([&] { return inner_->list(request, stop); }, stop);
}

Result<ObjectInfo> RetryingStore::write(std::string_view key,
                                        std::span<const std::byte> bytes,
                                        std::stop_token stop) {
  return call_again([&] { return inner_->write(key, bytes, stop); }, stop);
}

Result<ObjectInfo> RetryingStore::stat(std::string_view key,
                                       std::stop_token stop) {
  return call_again([&] { return inner_->stat(key, stop); }, stop);
}

}  // namespace leat
