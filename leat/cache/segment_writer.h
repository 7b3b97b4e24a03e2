// Puts records into segments and takes them out.
#pragma once
#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "leat/base/result.h"
#include "leat/cache/limit_share.h"
#include "leat/cache/record_map.h"
#include "leat/cache/segment_files.h"
#include "leat/cache/segment_tier_options.h"
#include "leat/cache/tier_health.h"

namespace leat {

/// The segments that a tier writes: those it made and those it took
/// over. It frees more than dropped records: segments with little alive,
/// records that readers found bad, and what a dead writer left half
/// done.
///
/// Threads:  one at a time; files_made() and can_drop() any.
/// Lifetime: what it is given outlives it.
class SegmentWriter {
 public:
  struct Parts {
    const SegmentTierOptions& options;
    SegmentFiles& files;
    FileOps& ops;
    RecordMap& records;
    LimitShare& share;
    TierHealth& health;
  };
  explicit SegmentWriter(const Parts& parts);

  /// The number of a segment with room for a record; makes one if necessary.
  Result<std::uint32_t> segment_for(std::uint64_t length_bytes);
  /// Writes a record there and counts it as claimed.
  Result<void> append(std::uint32_t number, const RecordKey& key,
                      std::span<const std::byte> body);
  /// Drops a record, and its segment if little is left in it. False: it is not
  /// ours.
  bool drop(const RecordKey& key);
  /// Punches out records that readers found bad.
  void punch_given_up();

  /// Call when a segment was taken over, with these records alive: punches out
  /// bodies without an entry, or dropped without a hole.
  void took_over(std::uint32_t number, std::vector<RecordEntry> alive);
  /// Removes a segment from the map; its file is gone, or another writer's.
  void forget_segment(std::uint32_t number);

  /// Writes the owner and its leased bytes into each header. False: not into
  /// all.
  bool publish_lease(std::uint64_t bytes);
  std::uint64_t owner() const { return owner_; }

  /// Segments made so far.
  std::uint64_t files_made() const { return files_made_; }
  /// False where the file system cannot punch holes: nothing is then freed, and
  /// the log has said so.
  bool can_drop() const { return can_drop_; }

 private:
  Result<std::uint32_t> make_segment();
  void find_out_if_holes_work(HeldSegment& held);
  void tidy(std::uint32_t number);
  void compact(std::uint32_t number);
  bool move_record(std::uint32_t from, const RecordEntry& entry);
  void punch_gaps(HeldSegment& held, std::vector<RecordEntry> alive);

  const Parts to_;
  const std::uint64_t owner_;
  std::atomic<bool> can_drop_ = true;
  std::atomic<std::uint64_t> files_made_ = 0;
  std::optional<std::uint32_t> active_;  ///< The segment being filled.
};

}  // namespace leat
