// Memory for batches, reused once nobody reads it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

#include "leat/metrics/metrics.h"
#include "leat/pipeline/slot.h"

namespace leat {

/// Hands out slots and keeps a few that were returned.
///
/// Never waits: a user who keeps batches gets fresh memory, which is counted.
///
/// Threads:  any.
/// Lifetime: its slots may outlive it.
class SlotPool {
 public:
  /// Keeps at most `keep_bytes` in unused slots.
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
