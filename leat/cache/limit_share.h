// A writer's share of the limit of a folder that several write.
#pragma once
#include <atomic>
#include <cstdint>
#include <optional>

#include "leat/cache/record_map.h"
#include "leat/cache/segment_tier_options.h"
#include "leat/metrics/metrics.h"

namespace leat {

/// How much a writer may hold, by what the headers of all segments say. It
/// decides, and writes nothing.
///
/// A writer that wants to write more than it has said leases the room first: it
/// says so in the headers of its segments, and all others count that as taken.
/// So two that see the same room free do not both take it.
///
/// Threads:  one at a time; allowed_bytes() any.
/// Lifetime: what it is given outlives it; `metrics` may be null.
class LimitShare {
 public:
  LimitShare(const SegmentTierOptions& options, const RecordMap& records,
             Metrics* metrics)
      : options_(options), records_(records), metrics_(metrics) {}
  ~LimitShare();

  /// Sets the part of the limit; nullopt: an even one.
  void set(std::optional<std::uint64_t> bytes) { share_ = bytes; }

  /// Deals the limit anew: looks at the header of each segment that is known.
  /// `unread_bytes`: of files that are named like segments, and cannot be
  /// followed.
  void deal(std::uint64_t unread_bytes);

  /// The bytes that may be held now: the share, and not more than the others
  /// have left free.
  std::uint64_t allowed_bytes() const { return allowed_bytes_; }
  bool has_room(std::uint64_t bytes) const {
    return records_.used_bytes() + bytes <= allowed_bytes_;
  }
  /// More write here than were expected: another job does. Or all together hold
  /// more than the limit.
  bool is_crowded() const { return has_joiners_ || is_over_limit_; }

  /// Whether the segment of a writer that is gone fits into what is ours. A
  /// rank that has more than its share parts with it, and the others begin with
  /// nothing. So each takes what fits; the rest is for those that have room,
  /// once all are here.
  bool may_take_over(const HeldSegment& held) const;

  /// As written in each of our headers.
  std::uint64_t leased_bytes() const { return leased_bytes_; }
  void set_leased(std::uint64_t bytes) { leased_bytes_ = bytes; }
  /// The bytes that are held, and a little more to be written without asking
  /// again: a joiner has to wait for room that is leased and not used.
  std::uint64_t most_leased() const;

 private:
  const SegmentTierOptions& options_;
  const RecordMap& records_;
  Metrics* const metrics_;
  std::atomic<std::uint64_t> allowed_bytes_ = 0;
  std::optional<std::uint64_t> share_;
  std::uint64_t leased_bytes_ = 0;
  /// This one and all others, when they were last looked for.
  std::uint64_t live_writers_ = 1;
  bool has_joiners_ = false;
  bool is_over_limit_ = false;
};

}  // namespace leat
