#include "leat/pipeline/sample_work.h"

#include <utility>

#include "leat/pipeline/batch_work.h"

namespace leat {

void SampleWork::backs_off(TimePoint from, TimePoint until) {
  const MutexLock lock(mutex_);
  ++retries_;
  times.add({{from, until}, Stall::kThrottled});
}

void SampleWork::held_back(TimePoint from, TimePoint until) {
  const MutexLock lock(mutex_);
  times.add({{from, until}, Stall::kThrottled});
}

bool SampleWork::is_awaited() const {
  return batch->is_awaited.load(std::memory_order_relaxed);
}

void SampleWork::cache_looked(TimePoint from, TimePoint until) {
  const MutexLock lock(mutex_);
  times.add({{from, until}, Stall::kCacheIo});
}

void SampleWork::peer_asked(TimePoint from, TimePoint until) {
  const MutexLock lock(mutex_);
  times.add({{from, until}, Stall::kPeer});
}

void SampleWork::other_job_awaited(TimePoint from, TimePoint until) {
  const MutexLock lock(mutex_);
  times.add({{from, until}, Stall::kOtherJob});
}

void SampleWork::cache_had(CacheLevel level, std::uint64_t bytes) {
  hits->count(level, bytes);
}

void SampleWork::waited_with(const Piece& piece) {
  const std::vector<Delay> delays = piece.delays();
  const MutexLock lock(mutex_);
  for (const Delay& delay : delays) times.add(delay);
}

std::span<const std::byte> SampleWork::bytes_of(std::size_t column) const {
  for (const Fetched& one : fetched) {
    if (one.column == column) return one.bytes;
  }
  return {};
}

std::span<const std::byte> SampleWork::record_of(std::size_t column) const {
  for (const Fetched& one : fetched) {
    if (one.column == column && one.record_work != nullptr) {
      return one.record_work->record;
    }
  }
  return {};
}

FormTrial* SampleWork::trial_of(std::size_t column) const {
  for (const Fetched& one : fetched) {
    if (one.column == column && one.record_work != nullptr) {
      return one.record_work->trial.get();
    }
  }
  return nullptr;
}

std::uint64_t SampleWork::retries() const {
  const MutexLock lock(mutex_);
  return retries_;
}

void SampleWork::begin_again(SampleId next) {
  for (Fetched& one : fetched) {
    if (one.reservation.bytes() > kept_.bytes()) {
      kept_ = std::move(one.reservation);
    }
  }
  fetched.clear();
  forget();
  id = next;
  hash = {};
  pending.store(1, std::memory_order_relaxed);
  const MutexLock lock(mutex_);
  error_.reset();
}

Reservation SampleWork::take_kept(std::uint64_t bytes, MemoryBudget& budget) {
  if (kept_.bytes() >= bytes) return std::move(kept_);
  std::optional<Reservation> more = budget.try_reserve(bytes);
  if (!more) return std::move(kept_);
  kept_.release();
  return *std::move(more);
}

void SampleWork::let_go() {
  fetched.clear();
  kept_.release();
}

void SampleWork::fail(Error error) {
  const MutexLock lock(mutex_);
  if (!error_) error_ = std::move(error);
}

bool SampleWork::has_failed() const {
  const MutexLock lock(mutex_);
  return error_.has_value();
}

std::optional<Error> SampleWork::error() const {
  const MutexLock lock(mutex_);
  return error_;
}

}  // namespace leat
