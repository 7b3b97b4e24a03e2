// A segment as a tier holds it.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "leat/cache/segment.h"

namespace leat {

/// A segment with what a tier knows about it. Only one thread at a time writes
/// to it: the one that changes files.
struct HeldSegment {
  explicit HeldSegment(Segment of) : segment(std::move(of)) {}
  Segment segment;
  bool is_mine = false;      ///< Changes once, by RecordMap::count_as_mine().
  bool is_emptying = false;  ///< Takes no new records.
  /// The number of its writer, if the writer was gone when last checked and the
  /// segment was left for a local rank that is yet to start.
  std::optional<std::uint64_t> left_of;
  std::atomic<std::uint64_t> alive_bytes = 0;  ///< In units of record_cost().
};
using HeldSegmentRef = std::shared_ptr<HeldSegment>;

}  // namespace leat
