// What a job has yet to read, for others that read the same.
#pragma once
#include <cstdint>
#include <vector>

#include "leat/base/ids.h"

namespace leat {

/// Where a run of an epoch says what it will read and what it has read.
///
/// Threads: any.
class UseBoard {
 public:
  virtual ~UseBoard() = default;

  /// From now on all samples of `wanted`, by number, are yet to be read.
  virtual void begin_epoch(std::uint64_t epoch,
                           const std::vector<bool>& wanted) = 0;
  /// The sample is not read again in this epoch. What an epoch says that is not
  /// the one begun last is passed over.
  virtual void used(std::uint64_t epoch, SampleId sample) = 0;
};

}  // namespace leat
