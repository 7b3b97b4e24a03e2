// One level of a cache: records in segments, in RAM or on disk.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "leat/base/clock.h"
#include "leat/base/mutex.h"
#include "leat/base/result.h"
#include "leat/cache/record_key.h"
#include "leat/cache/segment.h"
#include "leat/cache/segment_files.h"
#include "leat/cache/tier_health.h"
#include "leat/metrics/metrics.h"

namespace leat {

struct SegmentTierOptions {
  std::string name = "disk";  ///< "ram" or "disk", for messages.
  /// The limit of all writers together: see allowed_bytes().
  std::uint64_t limit_bytes = 0;
  /// Shares of the limit that are kept for writers who may yet come.
  std::uint32_t expected_writers = 1;
  /// The size of one segment; 0: a 32nd of the limit, from 4 MiB to 1 GiB.
  std::uint64_t segment_bytes = 0;
  /// Hash of the store that this job's records come from.
  std::uint64_t source = 0;
  /// Which gauges hold used_bytes() and allowed_bytes().
  Metric bytes_metric = Metric::kCacheDiskBytes;
  Metric allowed_metric = Metric::kCacheDiskAllowedBytes;
};

/// Records by their key, over segments of which this tier writes some and reads
/// all.
///
/// It is dumb: it never fetches and never evicts by itself. Bytes are checked
/// at every read; a record that is torn, flipped, stale, punched or missing is
/// a miss and is forgotten. A tier that fails is left for a while: all its
/// answers are then misses and refusals.
///
/// Several tiers, of any processes, may share a folder. Each writes its own
/// segments and reads those of the others, as of its last refresh(). The first
/// process to come takes over the segments of a writer that is gone.
///
/// Threads:  any. read() blocks for one read of the file; insert(), drop() and
///           refresh() one at a time, for some.
/// Lifetime: `ops`, `clock` and `metrics` (may be null) outlive it.
class SegmentTier {
 public:
  /// Takes over the segments of dead writers, as far as the limit goes. If
  /// others are expected, it takes its share of that, and the rest once they
  /// are here. Blocks: reads every index.
  ///
  /// Errors: as SegmentFiles::create(): nothing can be kept there
  static Result<std::unique_ptr<SegmentTier>> open(
      std::unique_ptr<SegmentFiles> files, const SegmentTierOptions& options,
      FileOps& ops, const Clock& clock, Metrics* metrics);
  ~SegmentTier();

  /// True if the record is known. No I/O.
  bool holds(const RecordKey& key) const;
  /// The length of a record, if it is known and the tier not left. No I/O.
  std::optional<std::uint64_t> length_of(const RecordKey& key) const;
  /// True if read() is worth a try: the record is known and the tier not left.
  bool may_hold(const RecordKey& key) const;

  /// Fills `into` with the record, or says false, a miss: `into` is then
  /// undefined. A record of another length is a miss.
  bool read(const RecordKey& key, std::span<std::byte> into);

  /// Writes a record; true if it is held from now on. False: no room, or the
  /// tier is left.
  bool insert(const RecordKey& key, std::span<const std::byte> body);

  /// Frees a record that this tier has written or taken over; nothing happens
  /// to others.
  void drop(const RecordKey& key);

  /// Marks a record that was taken over as one that the plan knows. False if
  /// there is none of ours.
  bool claim(const RecordKey& key);

  /// Frees records that were taken over and never claimed until `bytes` more
  /// have room: first those of other sources, then, if `of_own_source`, the
  /// rest. True if there is room now.
  bool make_room(std::uint64_t bytes, bool of_own_source);

  /// True if records of our source that were taken over are of use to the ranks
  /// that share this tier, though most of them are yet to be claimed: each rank
  /// claims only its part of all that they read.
  bool wants_strangers() const;

  /// Sets the part of the limit that this writer may take from now on; nullopt:
  /// an even part of it. Records above it that were never claimed are freed;
  /// the caller drops the rest, before.
  void set_share(std::optional<std::uint64_t> bytes);

  /// Sees what other writers did since in the segments that are known: a read
  /// of each of their indexes, a small part of refresh().
  void catch_up();

  /// Sees the changes of other writers, takes over segments of dead ones, and
  /// learns how many live ones share the limit. If another job has joined,
  /// frees records above the share that were never claimed; the caller drops
  /// claimed ones.
  void refresh();

  /// The room of the records that this tier may drop, by record_cost().
  std::uint64_t used_bytes() const;
  /// The room that it may hold now: an even share among live writers, or that
  /// of set_share(), and no more than the others have left free.
  std::uint64_t allowed_bytes() const;
  /// False where the file system cannot punch holes: nothing is then freed, and
  /// the log has said so.
  bool can_drop() const { return can_drop_; }
  std::uint64_t records() const;
  std::uint64_t segments() const;
  /// Segments that this tier has made so far.
  std::uint64_t files_made() const { return files_made_; }
  const SegmentTierOptions& options() const { return options_; }

 private:
  struct Held;
  /// The place of a record: 16 bytes, for there are many.
  struct Place {
    std::uint32_t segment = 0;  ///< In segments_.
    std::uint32_t page = 0;
    std::uint32_t length_bytes = 0;
    std::uint32_t body_crc = 0;
    friend bool operator==(const Place&, const Place&) = default;
  };
  struct Known {
    Place place;
    bool is_claimed = false;
  };

  SegmentTier(std::unique_ptr<SegmentFiles> files,
              const SegmentTierOptions& options, FileOps& ops,
              const Clock& clock, Metrics* metrics);

  std::shared_ptr<Held> held_at(std::uint32_t number) const;
  std::uint32_t segment_count() const;
  bool is_at(const RecordKey& key, std::uint32_t number,
             const RecordEntry& entry) const;
  void give_up(const RecordKey& key, const Place& place);
  bool claim_if_mine(Known& known) LEAT_REQUIRES(mutex_);
  void add_used(Held& held, std::int64_t bytes);

  // segment_tier_writes.cc
  std::optional<bool> claim_known(const RecordKey& key) LEAT_REQUIRES(writing_);
  Result<std::uint32_t> segment_for(std::uint64_t length_bytes)
      LEAT_REQUIRES(writing_);
  Result<std::uint32_t> make_segment() LEAT_REQUIRES(writing_);
  void find_out_if_holes_work(Held& held) LEAT_REQUIRES(writing_);
  std::uint32_t add_segment(std::shared_ptr<Held> held) LEAT_REQUIRES(writing_);
  void drop_held(const RecordKey& key) LEAT_REQUIRES(writing_);
  bool drop_strangers(std::deque<RecordKey>& strangers, std::uint64_t bytes)
      LEAT_REQUIRES(writing_);

  // segment_tier_cleaning.cc
  void tidy(std::uint32_t number) LEAT_REQUIRES(writing_);
  void compact(std::uint32_t number) LEAT_REQUIRES(writing_);
  bool move_record(std::uint32_t from, const RecordEntry& entry)
      LEAT_REQUIRES(writing_);
  void forget_segment(std::uint32_t number) LEAT_REQUIRES(writing_);
  void punch_given_up() LEAT_REQUIRES(writing_);
  void punch_gaps(Held& held, std::vector<RecordEntry> alive)
      LEAT_REQUIRES(writing_);

  // segment_tier_others.cc
  Result<void> learn_segments() LEAT_REQUIRES(writing_);
  void meet_segment(std::uint64_t id) LEAT_REQUIRES(writing_);
  bool reclaim_damaged(std::uint64_t id, const SegmentFiles::Opened& file)
      LEAT_REQUIRES(writing_);
  void follow(std::uint32_t number) LEAT_REQUIRES(writing_);
  void hear(std::uint32_t number, const RecordEntry& entry)
      LEAT_REQUIRES(writing_);
  bool may_take_over(const Held& held) const LEAT_REQUIRES(writing_);
  void try_take_over(std::uint32_t number) LEAT_REQUIRES(writing_);
  void count_as_mine(std::uint32_t number) LEAT_REQUIRES(writing_);
  void share_limit() LEAT_REQUIRES(writing_);
  void shed_strangers() LEAT_REQUIRES(writing_);
  bool lease(std::uint64_t bytes) LEAT_REQUIRES(writing_);
  bool has_segments() const LEAT_REQUIRES(writing_);
  std::uint64_t most_leased() const LEAT_REQUIRES(writing_);
  void return_lease() LEAT_REQUIRES(writing_);
  bool publish_lease(std::uint64_t bytes) LEAT_REQUIRES(writing_);

  const SegmentTierOptions options_;
  const std::unique_ptr<SegmentFiles> files_;
  FileOps& ops_;
  const Clock& clock_;
  Metrics* const metrics_;
  const std::uint64_t owner_;
  TierHealth reading_health_;
  TierHealth writing_health_;
  std::atomic<bool> can_drop_ = true;
  std::atomic<std::uint64_t> used_bytes_ = 0;
  std::atomic<std::uint64_t> files_made_ = 0;
  std::atomic<std::uint64_t> allowed_bytes_;

  Mutex writing_;  ///< Taken before mutex_.
  std::optional<std::uint32_t> active_ LEAT_GUARDED_BY(writing_);
  std::deque<RecordKey> strangers_ LEAT_GUARDED_BY(writing_);
  std::deque<RecordKey> own_strangers_ LEAT_GUARDED_BY(writing_);
  std::optional<std::uint64_t> share_ LEAT_GUARDED_BY(writing_);
  /// The bytes that others leave free for us: written in each of our headers.
  std::uint64_t leased_bytes_ LEAT_GUARDED_BY(writing_) = 0;
  /// This one and all others, when they were last looked for.
  std::uint64_t live_writers_ LEAT_GUARDED_BY(writing_) = 1;
  /// More write here than were expected: another job does.
  bool has_joiners_ LEAT_GUARDED_BY(writing_) = false;
  bool is_over_limit_ LEAT_GUARDED_BY(writing_) = false;  ///< With all others.
  /// The bytes of files that are named like segments, but cannot be followed.
  std::uint64_t unread_bytes_ LEAT_GUARDED_BY(writing_) = 0;

  mutable Mutex mutex_;
  std::vector<std::shared_ptr<Held>> segments_ LEAT_GUARDED_BY(mutex_);
  std::unordered_map<RecordKey, Known, RecordKeyHash> records_
      LEAT_GUARDED_BY(mutex_);
  /// Records of our source that were taken over, and those of them that were
  /// claimed.
  std::uint64_t taken_over_ LEAT_GUARDED_BY(mutex_) = 0;
  std::uint64_t claimed_ LEAT_GUARDED_BY(mutex_) = 0;
  /// Records of ours that readers found bad, to be punched out.
  std::vector<std::pair<RecordKey, Place>> given_up_ LEAT_GUARDED_BY(mutex_);
};

}  // namespace leat
