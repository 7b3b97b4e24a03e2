#include "leat/runtime/memory_budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "leat/base/check.h"
#include "leat/base/errors.h"
#include "leat/base/units.h"

namespace leat {

Reservation& Reservation::operator=(Reservation&& other) noexcept {
  if (this != &other) {
    release();
    budget_ = std::exchange(other.budget_, nullptr);
    bytes_ = std::exchange(other.bytes_, 0);
  }
  return *this;
}

void Reservation::release() {
  if (budget_ != nullptr) budget_->give_back(bytes_);
  budget_ = nullptr;
  bytes_ = 0;
}

MemoryBudget::MemoryBudget(std::uint64_t capacity_bytes, Metrics* metrics,
                           MemoryShare share)
    : capacity_bytes_(capacity_bytes), metrics_(metrics), share_(share) {}

MemoryBudget::~MemoryBudget() {
  const MutexLock lock(mutex_);
  LEAT_CHECK(used_bytes_ == 0);
}

std::string MemoryBudget::allows_in_words(std::uint64_t bytes) const {
  const bool is_part = share_.bytes > capacity_bytes_;
  const std::string whole =
      format_bytes(is_part ? share_.bytes : capacity_bytes_);
  if (share_.ranks == 1 && !is_part) {
    return fmt::format("memory= allows {}; raise memory=", whole);
  }
  const std::string allowed =
      share_.ranks == 1
          ? fmt::format("memory= allows {}", whole)
          : fmt::format(
                "this rank's share of memory= is {} (1 of {} ranks on "
                "this node)",
                whole, share_.ranks);
  const std::string part = is_part ? fmt::format(", {} of it for batches",
                                                 format_bytes(capacity_bytes_))
                                   : "";
  return fmt::format("{}{}; raise memory= to more than {}", allowed, part,
                     format_bytes(figure_for(bytes)));
}

std::uint64_t MemoryBudget::figure_for(std::uint64_t bytes) const {
  const bool is_part = capacity_bytes_ != 0 && share_.bytes > capacity_bytes_;
  // In floating point, since the product of two sizes may not fit.
  const double times = is_part ? static_cast<double>(share_.bytes) /
                                     static_cast<double>(capacity_bytes_)
                               : 1;
  return static_cast<std::uint64_t>(
             std::ceil(static_cast<double>(bytes) * times)) *
         share_.ranks;
}

Result<Reservation> MemoryBudget::reserve(std::uint64_t bytes,
                                          const std::stop_token& stop) {
  if (bytes > capacity_bytes_) {
    return exhausted("{} ({} bytes) are needed at once but {}",
                     format_bytes(bytes), bytes, allows_in_words(bytes));
  }
  MutexLock lock(mutex_);
  const std::uint64_t ticket = next_ticket_++;
  const auto place = waiting_.insert(waiting_.end(), ticket);
  const bool has_room =
      changed_.wait(lock, stop, [&]() LEAT_NO_THREAD_SAFETY_ANALYSIS {
        return waiting_.front() == ticket &&
               capacity_bytes_ - used_bytes_ >= bytes;
      });
  waiting_.erase(place);
  changed_.notify_all();  // The new first in line may have room.
  if (!has_room || stop.stop_requested()) {
    return Error(ErrorCode::kCancelled, "waiting for memory was cancelled");
  }
  return take(bytes);
}

std::optional<Reservation> MemoryBudget::try_reserve(std::uint64_t bytes) {
  const MutexLock lock(mutex_);
  if (!waiting_.empty() || capacity_bytes_ - used_bytes_ < bytes) {
    return std::nullopt;
  }
  return take(bytes);
}

Reservation MemoryBudget::take(std::uint64_t bytes) {
  used_bytes_ += bytes;
  if (metrics_ != nullptr) {
    metrics_->add(Metric::kRuntimeReservedBytes,
                  static_cast<std::int64_t>(bytes));
  }
  return Reservation(this, bytes);
}

std::uint64_t MemoryBudget::used_bytes() const {
  const MutexLock lock(mutex_);
  return used_bytes_;
}

std::size_t MemoryBudget::waiting() const {
  const MutexLock lock(mutex_);
  return waiting_.size();
}

void MemoryBudget::give_back(std::uint64_t bytes) {
  const MutexLock lock(mutex_);
  LEAT_CHECK(bytes <= used_bytes_);
  used_bytes_ -= bytes;
  if (metrics_ != nullptr) {
    metrics_->add(Metric::kRuntimeReservedBytes,
                  -static_cast<std::int64_t>(bytes));
  }
  changed_.notify_all();
}

}  // namespace leat
