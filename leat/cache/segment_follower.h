// Sees what other writers of a folder do.
#pragma once
#include <cstdint>
#include <deque>

#include "leat/base/result.h"
#include "leat/cache/limit_share.h"
#include "leat/cache/record_map.h"
#include "leat/cache/segment_files.h"
#include "leat/cache/segment_tier_options.h"
#include "leat/cache/segment_writer.h"
#include "leat/cache/tier_health.h"

namespace leat {

/// The segments of other writers: follows their indexes, and takes over those
/// whose writers are gone.
///
/// Threads: one at a time. Lifetime: its arguments must outlive it; `metrics`
/// may be null.
class SegmentFollower {
 public:
  struct Parts {
    const SegmentTierOptions& options;
    SegmentFiles& files;
    FileOps& ops;
    RecordMap& records;
    LimitShare& share;
    SegmentWriter& writer;
    TierHealth& health;
    Metrics* metrics;
  };
  explicit SegmentFollower(const Parts& parts) : to_(parts) {}

  /// Finds the existing segments, follows all that are not ours, and takes over
  /// what it may.
  ///
  /// Errors: as SegmentFiles::list()
  Result<void> learn_segments();
  /// Follows the known ones: a small part of learn_segments().
  void catch_up();
  /// The bytes of files that are named like segments but cannot be followed.
  std::uint64_t unread_bytes() const { return unread_bytes_; }

  /// Records that were taken over, to be dropped from the front unless they are
  /// claimed: of other sources, and of our own.
  std::deque<RecordKey>& strangers() { return strangers_; }
  std::deque<RecordKey>& own_strangers() { return own_strangers_; }

 private:
  void meet_segment(std::uint64_t id);
  bool reclaim_damaged(std::uint64_t id, const SegmentFiles::Opened& file);
  void follow(std::uint32_t number);
  void try_take_over(std::uint32_t number);
  void count_as_mine(std::uint32_t number);
  void count_bad(std::uint64_t records);

  const Parts to_;
  std::uint64_t unread_bytes_ = 0;
  std::deque<RecordKey> strangers_;
  std::deque<RecordKey> own_strangers_;
};

}  // namespace leat
