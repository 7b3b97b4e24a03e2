// The places of the records of a tier.
#pragma once
#include <atomic>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "leat/base/mutex.h"
#include "leat/cache/held_segment.h"
#include "leat/cache/record_key.h"
#include "leat/metrics/metrics.h"

namespace leat {

/// The place of a record; only 16 bytes, since there are many.
struct RecordPlace {
  std::uint32_t segment = 0;  ///< Its number in the map.
  std::uint32_t page = 0;
  std::uint32_t length_bytes = 0;
  std::uint32_t body_crc = 0;
  friend bool operator==(const RecordPlace&, const RecordPlace&) = default;
};
RecordPlace place_of(std::uint32_t segment, const RecordEntry& entry);

struct FoundRecord {
  RecordPlace place;
  HeldSegmentRef held;
};

/// The records of a tier by their key, and its segments by number. Its lock is
/// never held across I/O, so a reader never waits for a writer.
///
/// A record that several segments have is found in one of them, in ours if one
/// is ours; once it is gone there, in the next.
///
/// A reader works with a copy of a record's place and shares its segment, so
/// the record may be punched and the file unlinked meanwhile: the checksum then
/// fails, which counts as a miss.
///
/// Threads: any; calls that add, forget or count segments, one at a time.
/// Lifetime: `metrics` (may be null) must outlive it.
class RecordMap {
 public:
  /// `bytes_metric` holds used_bytes().
  RecordMap(Metric bytes_metric, Metrics* metrics)
      : bytes_metric_(bytes_metric), metrics_(metrics) {}
  ~RecordMap();

  bool holds(const RecordKey& key) const;
  std::optional<FoundRecord> find(const RecordKey& key) const;
  /// True if the record's place is that entry of that segment.
  bool is_at(const RecordKey& key, std::uint32_t number,
             const RecordEntry& entry) const;
  /// Records, and the segments that hold them.
  std::uint64_t records() const;
  std::uint64_t segments() const;
  /// The bytes of records that the tier may drop, by record_cost().
  std::uint64_t used_bytes() const { return used_bytes_; }

  /// Numbers of segments are below this; at() is null for some of them.
  std::uint32_t end() const;
  HeldSegmentRef at(std::uint32_t number) const;
  std::uint32_t add(HeldSegmentRef held);
  void forget_segment(std::uint32_t number);
  bool has_mine() const;
  /// Call when a segment was taken over: its records cost `bytes`, and
  /// `of_own_source` of them are of our source.
  void count_as_mine(std::uint32_t number, std::uint64_t bytes,
                     std::uint64_t of_own_source);

  /// A segment's entry says that a record is there, or was dropped.
  void hear(std::uint32_t number, const RecordEntry& entry);
  /// We wrote the record: as hear(), and it is counted as used and claimed.
  void wrote(std::uint32_t number, const RecordEntry& entry);
  /// Takes our record out, to be dropped. Another writer may still have it.
  std::optional<FoundRecord> take(const RecordKey& key);
  /// The record was copied to another place.
  void moved(const RecordKey& key, const RecordPlace& from,
             const RecordPlace& to);

  /// Forgets the place of a record that was found bad.
  void give_up(const RecordKey& key, const RecordPlace& place);
  /// Our records given up since the last call, to be punched out.
  std::vector<std::pair<RecordKey, RecordPlace>> take_given_up();

  /// Marks our record as known to the plan. False: it is another writer's.
  /// Nullopt: unknown.
  std::optional<bool> claim(const RecordKey& key);
  bool is_claimed(const RecordKey& key) const;
  /// True if the ranks of a job, each of which sees its part of all records,
  /// have claimed at least half of those that were taken over of our source.
  bool are_claimed_by(std::uint32_t ranks) const;

 private:
  struct Known {
    RecordPlace place;
    bool is_claimed = false;
  };
  using Records = std::unordered_map<RecordKey, Known, RecordKeyHash>;
  bool claim(Known& known) LEAT_REQUIRES(mutex_);
  void hear_locked(std::uint32_t number, const RecordEntry& entry)
      LEAT_REQUIRES(mutex_);
  void hear_put(const RecordKey& key, const RecordPlace& place)
      LEAT_REQUIRES(mutex_);
  void hear_drop(const RecordKey& key, const RecordPlace& place)
      LEAT_REQUIRES(mutex_);
  void leave_place(Records::iterator found) LEAT_REQUIRES(mutex_);
  void forget_spares_in(std::uint32_t number) LEAT_REQUIRES(mutex_);
  void add_used(HeldSegment& held, std::int64_t bytes);

  const Metric bytes_metric_;
  Metrics* const metrics_;
  std::atomic<std::uint64_t> used_bytes_ = 0;

  mutable Mutex mutex_;
  std::vector<HeldSegmentRef> segments_ LEAT_GUARDED_BY(mutex_);
  Records records_ LEAT_GUARDED_BY(mutex_);
  /// Further places of some of the records, all in segments of other writers:
  /// one that copies a record on has it in two for a while, and two writers may
  /// have written the same one.
  std::unordered_multimap<RecordKey, RecordPlace, RecordKeyHash> spares_
      LEAT_GUARDED_BY(mutex_);
  /// Records of our source that were taken over, and how many were
  /// claimed.
  std::uint64_t taken_over_ LEAT_GUARDED_BY(mutex_) = 0;
  std::uint64_t claimed_ LEAT_GUARDED_BY(mutex_) = 0;
  std::vector<std::pair<RecordKey, RecordPlace>> given_up_
      LEAT_GUARDED_BY(mutex_);
};

}  // namespace leat
