// A claim tells nothing about earlier writes: its last owner may have written
// the record and let go. So the thread claims first, then picks up the others'
// writes, then looks. If the record is not there then, nobody has it and nobody
// else brings it. Requests in the meantime share one such round.

#include "leat/cache/fetch_turns.h"

#include <utility>

#include "leat/runtime/start_thread.h"
#include "leat/runtime/thread_name.h"

namespace leat {

FetchTurns::FetchTurns(std::unique_ptr<RecordClaims> claims, SharedTiers tiers,
                       Options options)
    : options_(options),
      claims_(std::move(claims)),
      tiers_(std::move(tiers)),
      thread_(start_thread([this](const std::stop_token& stop) {
        name_this_thread("leat-cache-turn");
        run(stop);
      })) {}

FetchTurns::~FetchTurns() {
  thread_.request_stop();
  thread_.join();
}

void FetchTurns::ask(const RecordKey& key, std::stop_token stop,
                     Decided decided) {
  const MutexLock lock(mutex_);
  new_.push_back({.key = key,
                  .stop = std::move(stop),
                  .decided = std::move(decided),
                  .since = SteadyClock().now()});
  changed_.notify_all();
}

void FetchTurns::end(const RecordKey& key) {
  {
    const MutexLock lock(mutex_);
    if (ours_.erase(key) == 0) return;
  }
  claims_->release(key);
}

std::size_t FetchTurns::held() const {
  const MutexLock lock(mutex_);
  return ours_.size();
}

void FetchTurns::see_others() {
  const MutexLock lock(seeing_);
  const std::uint64_t announced = claims_->announcements();
  tiers_.see_others(announced != seen_);
  seen_ = announced;
}

void FetchTurns::run(const std::stop_token& stop) {
  std::vector<Asked> asked;
  while (true) {
    {
      MutexLock lock(mutex_);
      const auto has_new = [this]() LEAT_NO_THREAD_SAFETY_ANALYSIS {
        return !new_.empty();
      };
      if (asked.empty()) {
        (void)changed_.wait(lock, stop, has_new);
      } else {
        (void)changed_.wait_for(lock, stop, options_.look_every, has_new);
      }
      for (Asked& one : new_) asked.push_back(std::move(one));
      new_.clear();
    }
    const bool is_ending = stop.stop_requested();
    if (!is_ending) {
      try_claims(asked);
      see_others();
    }
    decide(asked, is_ending);
    if (is_ending) return;
  }
}

void FetchTurns::try_claims(std::vector<Asked>& asked) {
  const TimePoint now = SteadyClock().now();
  for (Asked& one : asked) {
    if (now - one.tried < options_.try_every) continue;
    one.tried = now;
    const MutexLock lock(mutex_);
    // Within this process, too, only one thread fetches it.
    if (!ours_.insert(one.key).second) continue;
    one.is_claimed = claims_->try_claim(one.key);
    if (!one.is_claimed) ours_.erase(one.key);
  }
}

void FetchTurns::decide(std::vector<Asked>& asked, bool is_ending) {
  const TimePoint now = SteadyClock().now();
  std::vector<Asked> waiting;
  for (Asked& one : asked) {
    const bool is_there = !is_ending && tiers_.is_there(one.key);
    const bool is_over = is_ending || one.stop.stop_requested() ||
                         now - one.since >= options_.patience;
    if (!is_there && !one.is_claimed && !is_over) {
      waiting.push_back(std::move(one));
      continue;
    }
    if (is_there && one.is_claimed) end(one.key);
    one.decided(is_there);
  }
  asked = std::move(waiting);
}

}  // namespace leat
