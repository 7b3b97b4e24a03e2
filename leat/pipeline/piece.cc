#include "leat/pipeline/piece.h"

#include <utility>

namespace leat {

void Piece::backs_off(TimePoint from, TimePoint until) {
  const MutexLock lock(mutex_);
  ++retries_;
  if (!backoffs_.empty() && from < backoffs_.back().end) {
    from = backoffs_.back().end;  // Two reads of one piece wait side by side.
  }
  if (from < until) backoffs_.push_back({from, until});
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
    fetched_ = SteadyClock().now();
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
  return fetched_;
}

std::vector<Interval> Piece::backoffs() const {
  const MutexLock lock(mutex_);
  return backoffs_;
}

}  // namespace leat
