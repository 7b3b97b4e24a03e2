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

/// The place of a record: 16 bytes, for there are many.
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
/// never held across I/O: so a reader waits for no writer.
///
/// A reader works with a copy of a record's place and a share of its segment,
/// so the record may be punched and the file unlinked under it: the checksum
/// then fails, and that is a miss.
///
/// Threads:  any; what adds, forgets or counts segments, one at a time.
/// Lifetime: `metrics` (may be null) outlives it.
class RecordMap {
 public:
  /// `bytes_metric` holds used_bytes().
  RecordMap(Metric bytes_metric, Metrics* metrics)
      : bytes_metric_(bytes_metric), metrics_(metrics) {}
  ~RecordMap();

  bool holds(const RecordKey& key) const;
  std::optional<FoundRecord> find(const RecordKey& key) const;
  /// True if the record is known by that entry of that segment.
  bool is_at(const RecordKey& key, std::uint32_t number,
             const RecordEntry& entry) const;
  /// Records, and the segments that hold them.
  std::uint64_t records() const;
  std::uint64_t segments() const;
  /// The bytes that are held of what the tier may drop, by record_cost().
  std::uint64_t used_bytes() const { return used_bytes_; }

  /// Numbers of segments are below this; at() of some of them is null.
  std::uint32_t end() const;
  HeldSegmentRef at(std::uint32_t number) const;
  std::uint32_t add(HeldSegmentRef held);
  void forget_segment(std::uint32_t number);
  bool has_mine() const;
  /// A segment was taken over: its records cost `bytes`, and `of_own_source` of
  /// them are of our source.
  void count_as_mine(std::uint32_t number, std::uint64_t bytes,
                     std::uint64_t of_own_source);

  /// A segment says of a record that it is there, or was dropped.
  void hear(std::uint32_t number, const RecordEntry& entry);
  /// We have written it: hear(), and it is used and claimed.
  void wrote(std::uint32_t number, const RecordEntry& entry);
  /// Takes it out, if it is ours, to be dropped.
  std::optional<FoundRecord> take(const RecordKey& key);
  /// It was copied on.
  void moved(const RecordKey& key, const RecordPlace& from,
             const RecordPlace& to);

  /// Forgets a record that was found bad.
  void give_up(const RecordKey& key, const RecordPlace& place);
  /// Those of ours since the last call, to be punched out.
  std::vector<std::pair<RecordKey, RecordPlace>> take_given_up();

  /// Marks a record of ours as one that the plan knows. False: it is another's.
  /// Nullopt: it is not known.
  std::optional<bool> claim(const RecordKey& key);
  bool is_claimed(const RecordKey& key) const;
  /// True if the ranks of a job, each of which meets its part of all records,
  /// have claimed at least half as many as were taken over of our source.
  bool are_claimed_by(std::uint32_t ranks) const;

 private:
  struct Known {
    RecordPlace place;
    bool is_claimed = false;
  };
  bool claim(Known& known) LEAT_REQUIRES(mutex_);
  void hear_locked(std::uint32_t number, const RecordEntry& entry)
      LEAT_REQUIRES(mutex_);
  void add_used(HeldSegment& held, std::int64_t bytes);

  const Metric bytes_metric_;
  Metrics* const metrics_;
  std::atomic<std::uint64_t> used_bytes_ = 0;

  mutable Mutex mutex_;
  std::vector<HeldSegmentRef> segments_ LEAT_GUARDED_BY(mutex_);
  std::unordered_map<RecordKey, Known, RecordKeyHash> records_
      LEAT_GUARDED_BY(mutex_);
  /// Records of our source that were taken over, and those of them that were
  /// claimed.
  std::uint64_t taken_over_ LEAT_GUARDED_BY(mutex_) = 0;
  std::uint64_t claimed_ LEAT_GUARDED_BY(mutex_) = 0;
  std::vector<std::pair<RecordKey, RecordPlace>> given_up_
      LEAT_GUARDED_BY(mutex_);
};

}  // namespace leat
