// A writer's share of the limit of a folder that several writers use.
#pragma once
#include <atomic>
#include <cstdint>
#include <optional>

#include "leat/cache/record_map.h"
#include "leat/cache/segment_tier_options.h"
#include "leat/metrics/metrics.h"

namespace leat {

/// Computes how much a writer may hold, from the headers of all segments. It
/// decides and writes nothing.
///
/// A writer that wants more room than it has announced leases it first, in the
/// headers of its segments, and all others count it as taken. So two writers
/// that see the same free room do not both take it.
///
/// Threads: one at a time; allowed_bytes() any. Lifetime: its arguments must
/// outlive it; `metrics` may be null.
class LimitShare {
 public:
  LimitShare(const SegmentTierOptions& options, const RecordMap& records,
             Metrics* metrics)
      : options_(options), records_(records), metrics_(metrics) {}
  ~LimitShare();

  /// Sets the part of the limit; nullopt: an even part.
  void set(std::optional<std::uint64_t> bytes) { share_ = bytes; }

  /// Divides the limit anew, from the header of each known segment.
  /// `unread_bytes`: of files that are named like segments but cannot be
  /// followed.
  void deal(std::uint64_t unread_bytes);

  /// The bytes that may be held now: the share, but no more than others have
  /// left free.
  std::uint64_t allowed_bytes() const { return allowed_bytes_; }
  bool has_room(std::uint64_t bytes) const {
    return records_.used_bytes() + bytes <= allowed_bytes_;
  }
  /// More writers are here than expected, so another job is one. Or all
  /// together hold more than the limit.
  bool is_crowded() const { return has_joiners_ || is_over_limit_; }

  /// Whether the segment of a dead writer fits into our share. A rank with
  /// more than its share gives up segments, while others begin with nothing.
  /// So each takes what fits; once all are here, the rest goes to those with
  /// room.
  bool may_take_over(const HeldSegment& held) const;

  /// The bytes that each of our headers announces.
  std::uint64_t leased_bytes() const { return leased_bytes_; }
  void set_leased(std::uint64_t bytes) { leased_bytes_ = bytes; }
  /// The bytes held, plus a little to write without asking again: a newcomer
  /// has to wait for room that is leased and unused.
  std::uint64_t most_leased() const;

 private:
  const SegmentTierOptions& options_;
  const RecordMap& records_;
  Metrics* const metrics_;
  std::atomic<std::uint64_t> allowed_bytes_ = 0;
  std::optional<std::uint64_t> share_;
  std::uint64_t leased_bytes_ = 0;
  /// This one and the others, as last counted.
  std::uint64_t live_writers_ = 1;
  bool has_joiners_ = false;
  bool is_over_limit_ = false;
};

}  // namespace leat
