// The memory of one field of one batch.
#pragma once
#include <cstddef>
#include <memory>
#include <span>

namespace leat {

/// The memory of one field of one batch. Shared by the batch and by every view
/// that Python makes of it. When the last one is destroyed, on any thread, the
/// memory returns to its pool, even if the loader is gone by then.
class Slot {
 public:
  virtual ~Slot() = default;
  virtual std::span<std::byte> bytes() = 0;
};
using SlotRef = std::shared_ptr<Slot>;

}  // namespace leat
