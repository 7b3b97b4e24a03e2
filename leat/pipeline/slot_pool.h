// Memory for batches, used again once nobody looks at it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "leat/metrics/metrics.h"

namespace leat {

/// The memory of one field of one batch. Shared by the batch and by every view
/// that Python makes of it; when the last one dies, on any thread, it goes back
/// to its pool, even if the loader is gone by then.
class Slot {
 public:
  virtual ~Slot() = default;
  virtual std::span<std::byte> bytes() = 0;
};
using SlotRef = std::shared_ptr<Slot>;

/// Hands out slots and keeps a few that came back.
///
/// Never waits: a user who keeps batches gets fresh memory, which is counted.
///
/// Threads:  any.
/// Lifetime: its slots may outlive it.
class SlotPool {
 public:
  /// Keeps at most `keep_bytes` of slots that nobody uses.
  SlotPool(std::uint64_t keep_bytes, std::shared_ptr<Metrics> metrics);
  ~SlotPool();
  SlotPool(const SlotPool&) = delete;
  SlotPool& operator=(const SlotPool&) = delete;

  /// A slot of `size_bytes`, not initialised.
  SlotRef take(std::size_t size_bytes);

 private:
  struct Shared;
  class PooledSlot;
  std::shared_ptr<Shared> shared_;
};

}  // namespace leat
