// A segment, as a tier holds it.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "leat/cache/segment.h"

namespace leat {

/// A segment, and what a tier knows about it. One thread at a time writes to
/// it: the one that changes files.
struct HeldSegment {
  explicit HeldSegment(Segment of) : segment(std::move(of)) {}
  Segment segment;
  bool is_mine = false;      ///< Changes once, by RecordMap::count_as_mine().
  bool is_emptying = false;  ///< Nothing new goes into it.
  /// The number of its writer, if that was gone when we looked, and the segment
  /// was left for a rank of ours that is yet to come.
  std::optional<std::uint64_t> left_of;
  std::atomic<std::uint64_t> alive_bytes = 0;  ///< By record_cost().
};
using HeldSegmentRef = std::shared_ptr<HeldSegment>;

}  // namespace leat
