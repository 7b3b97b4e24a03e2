#include "leat/pipeline/piece.h"

#include <utility>

namespace leat {

void Piece::backs_off(TimePoint from, TimePoint until) {
  const MutexLock lock(mutex_);
  ++retries_;
  times_.add({{from, until}, Stall::kThrottled});
}

void Piece::held_back(TimePoint from, TimePoint until) {
  const MutexLock lock(mutex_);
  times_.add({{from, until}, Stall::kThrottled});
}

void Piece::cache_looked(TimePoint from, TimePoint until) {
  const MutexLock lock(mutex_);
  times_.add({{from, until}, Stall::kCacheIo});
}

void Piece::peer_asked(TimePoint from, TimePoint until) {
  const MutexLock lock(mutex_);
  times_.add({{from, until}, Stall::kPeer});
}

void Piece::other_job_awaited(TimePoint from, TimePoint until) {
  const MutexLock lock(mutex_);
  times_.add({{from, until}, Stall::kOtherJob});
}

void Piece::cache_had(CacheLevel level, std::uint64_t size_bytes) {
  hits_->count(level, size_bytes);
}

std::uint64_t Piece::take_retries() {
  const MutexLock lock(mutex_);
  return std::exchange(retries_, 0);
}

void Piece::read_done(Result<void> result) {
  std::vector<Waiter> waiters;
  {
    const MutexLock lock(mutex_);
    if (!result && !error_) error_ = std::move(result).error();
    if (--reads_left_ != 0) return;
    times_.fetched = SteadyClock().now();
    waiters.swap(waiters_);
  }
  for (const Waiter& waiter : waiters) waiter(*this);
}

void Piece::when_done(Waiter waiter) {
  {
    const MutexLock lock(mutex_);
    if (reads_left_ != 0) {
      waiters_.push_back(std::move(waiter));
      return;
    }
  }
  waiter(*this);
}

std::optional<Error> Piece::error() const {
  const MutexLock lock(mutex_);
  return error_;
}

TimePoint Piece::fetched() const {
  const MutexLock lock(mutex_);
  return times_.fetched;
}

std::vector<Delay> Piece::delays() const {
  const MutexLock lock(mutex_);
  return times_.delays;
}

}  // namespace leat
