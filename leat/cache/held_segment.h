// A segment, as a tier holds it: for the parts of SegmentTier alone.
#pragma once
#include <atomic>
#include <cstdint>
#include <optional>
#include <utility>

#include "leat/cache/segment.h"
#include "leat/cache/segment_tier.h"

namespace leat {

/// A segment, and what this tier knows about it.
struct SegmentTier::Held {
  explicit Held(Segment of) : segment(std::move(of)) {}
  Segment segment;
  bool is_mine = false;      ///< Changes once, under `writing_` and `mutex_`.
  bool is_emptying = false;  ///< Nothing new goes into it.
  /// Its writer was gone when we looked, and it was left for a rank of ours
  /// that is yet to come: the number of that writer.
  std::optional<std::uint64_t> left_of;
  std::atomic<std::uint64_t> alive_bytes = 0;  ///< By record_cost().
};

}  // namespace leat
