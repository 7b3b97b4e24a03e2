// The bytes that a job may hold, and who holds them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include "leat/base/mutex.h"
#include "leat/base/result.h"
#include "leat/metrics/metrics.h"

namespace leat {

class MemoryBudget;

/// Bytes of a MemoryBudget, returned on destruction.
///
/// Lifetime: the budget must outlive it.
class [[nodiscard]] Reservation {
 public:
  Reservation() = default;
  Reservation(Reservation&& other) noexcept
      : budget_(std::exchange(other.budget_, nullptr)),
        bytes_(std::exchange(other.bytes_, 0)) {}
  Reservation& operator=(Reservation&& other) noexcept;
  ~Reservation() { release(); }

  std::uint64_t bytes() const { return bytes_; }
  /// Returns the bytes now.
  void release();

 private:
  friend class MemoryBudget;
  Reservation(MemoryBudget* budget, std::uint64_t bytes)
      : budget_(budget), bytes_(bytes) {}

  MemoryBudget* budget_ = nullptr;
  std::uint64_t bytes_ = 0;
};

/// A rank's part of the user's figure, if a budget is only a part of that.
struct MemoryShare {
  std::uint64_t bytes = 0;  ///< The rank's; 0: the budget has all of it.
  std::uint32_t ranks = 1;  ///< On this node, with as much each.
};

/// A fixed number of bytes, granted strictly in the order of requests: a small
/// request never overtakes a large one, so memory is granted in the plan's
/// order.
///
/// It counts; it does not allocate.
///
/// Threads:  any.
/// Lifetime: outlives its reservations; destroying it with bytes held is a bug
///           and aborts.
class MemoryBudget {
 public:
  /// `metrics` may be null, or else outlives the budget. Messages say `share`,
  /// and a figure that the user can give.
  explicit MemoryBudget(std::uint64_t capacity_bytes,
                        Metrics* metrics = nullptr, MemoryShare share = {});
  ~MemoryBudget();
  MemoryBudget(const MemoryBudget&) = delete;
  MemoryBudget& operator=(const MemoryBudget&) = delete;

  /// Waits until `bytes` are free and all earlier requests have been served.
  ///
  /// Errors:
  ///   kResourceExhausted  more than the whole budget; the message names both
  ///   kCancelled          `stop` fired first
  Result<Reservation> reserve(std::uint64_t bytes, const std::stop_token& stop);

  /// Never waits: nullopt if it would have to.
  std::optional<Reservation> try_reserve(std::uint64_t bytes);

  /// For messages: "memory= allows 10 KiB; raise memory=", or the same of a
  /// rank's share, or of a part of it, and the figure that `bytes` take.
  std::string allows_in_words(std::uint64_t bytes) const;
  /// The memory= of a node that gives such a budget `bytes`.
  std::uint64_t figure_for(std::uint64_t bytes) const;
  const MemoryShare& share() const { return share_; }
  std::uint64_t capacity_bytes() const { return capacity_bytes_; }
  std::uint64_t used_bytes() const;
  /// The number of reserve() calls that are waiting.
  std::size_t waiting() const;

 private:
  friend class Reservation;
  Reservation take(std::uint64_t bytes) LEAT_REQUIRES(mutex_);
  void give_back(std::uint64_t bytes);

  const std::uint64_t capacity_bytes_;
  Metrics* const metrics_;
  const MemoryShare share_;

  mutable Mutex mutex_;
  CondVar changed_;
  std::uint64_t used_bytes_ LEAT_GUARDED_BY(mutex_) = 0;
  std::uint64_t next_ticket_ LEAT_GUARDED_BY(mutex_) = 0;
  std::list<std::uint64_t> waiting_ LEAT_GUARDED_BY(mutex_);  // Tickets.
};

}  // namespace leat
