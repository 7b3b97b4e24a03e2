// The samples that a job has yet to read, and when, for other jobs that read
// the same.
#pragma once
#include <cstdint>
#include <vector>

#include "leat/base/ids.h"

namespace leat {

/// The turn at which the job reads a sample. Reads of all ranks count: 1 is the
/// first read of the running epoch, and the next epoch continues the count. 0
/// means that the sample is not read again.
using ReadTurn = std::uint32_t;

/// A run of an epoch reports here the samples that it will read and those that
/// it has read.
///
/// Threads: any.
class UseBoard {
 public:
  /// The part of an epoch that a run reads.
  struct Reading {
    std::uint64_t epoch = 0;
    std::vector<ReadTurn> turns = {};  ///< The turns of all samples, by number.
    std::uint64_t begin = 0;           ///< Turns that are over.
    std::uint32_t ranks = 1;           ///< That read beside this one.
  };
  virtual ~UseBoard() = default;

  virtual void begin_epoch(const Reading& reading) = 0;
  /// The sample was read, and is wanted again at `next`. Reports of an epoch
  /// other than the one begun last are ignored.
  virtual void used(std::uint64_t epoch, SampleId sample, ReadTurn next) = 0;
};

}  // namespace leat
