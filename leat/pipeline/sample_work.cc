#include "leat/pipeline/sample_work.h"

#include <algorithm>
#include <utility>

namespace leat {

void SampleWork::backs_off(TimePoint from, TimePoint until) {
  const MutexLock lock(mutex_);
  ++retries_;
  add_backoff({from, until});
}

void SampleWork::waited_with(const Piece& piece) {
  const std::vector<Interval> backoffs = piece.backoffs();
  const MutexLock lock(mutex_);
  for (const Interval& backoff : backoffs) add_backoff(backoff);
}

void SampleWork::add_backoff(Interval backoff) {
  if (!times.backoffs.empty()) {  // Two reads may wait side by side.
    backoff.begin = std::max(backoff.begin, times.backoffs.back().end);
  }
  if (backoff.begin < backoff.end) times.backoffs.push_back(backoff);
}

std::span<const std::byte> SampleWork::bytes_of(std::size_t column) const {
  for (const Fetched& one : fetched) {
    if (one.column == column) return one.bytes;
  }
  return {};
}

std::uint64_t SampleWork::retries() const {
  const MutexLock lock(mutex_);
  return retries_;
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
