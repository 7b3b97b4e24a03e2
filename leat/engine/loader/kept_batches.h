// Batches that a user still holds.
#pragma once
#include <memory>
#include <vector>

#include "leat/pipeline/batch.h"

namespace leat {

/// Warns once of a user who keeps batches: each then needs fresh memory.
///
/// Threads: one at a time.
class KeptBatches {
 public:
  /// Call for each batch that is handed over.
  void add(const Batch& batch);

 private:
  std::vector<std::weak_ptr<Slot>> slots_;  // One for each batch.
  bool has_warned_ = false;
};

}  // namespace leat
