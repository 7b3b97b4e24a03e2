// One level of a cache: records in segments, in RAM or on disk.
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>

#include "leat/base/clock.h"
#include "leat/base/mutex.h"
#include "leat/base/result.h"
#include "leat/cache/limit_share.h"
#include "leat/cache/record_map.h"
#include "leat/cache/segment_files.h"
#include "leat/cache/segment_follower.h"
#include "leat/cache/segment_tier_options.h"
#include "leat/cache/segment_writer.h"
#include "leat/cache/tier_health.h"
#include "leat/metrics/metrics.h"

namespace leat {

/// Records by key, in segments: this tier writes some of them and reads
/// all.
///
/// It only stores: it never fetches, and never evicts by itself. Bytes are
/// checked at every read; a record that is torn, flipped, stale, punched or
/// missing counts as a miss and is forgotten. A tier that fails is disabled for
/// a while: all its answers are then misses and refusals.
///
/// Several tiers, in any processes, may share a folder. Each writes its own
/// segments and reads the others' as of its last refresh(). The first process
/// to notice takes over the segments of a writer that is gone.
///
/// Threads:  any. read() blocks for one read of the file; insert(), drop() and
///           refresh() one at a time, for some.
/// Lifetime: `ops`, `clock` and `metrics` (may be null) must outlive it.
class SegmentTier {
 public:
  /// Takes over the segments of dead writers, as far as the limit permits. If
  /// others are expected, it takes its share of them, and the rest once they
  /// are here. Blocks: reads every index.
  ///
  /// Errors: as SegmentFiles::create(): the tier cannot keep anything
  static Result<std::unique_ptr<SegmentTier>> open(
      std::unique_ptr<SegmentFiles> files, const SegmentTierOptions& options,
      FileOps& ops, const Clock& clock, Metrics* metrics);
  ~SegmentTier();

  /// True if the record is known. No I/O.
  bool holds(const RecordKey& key) const { return records_.holds(key); }
  /// The length of a record, if it is known and the tier not left. No I/O.
  std::optional<std::uint64_t> length_of(const RecordKey& key) const;
  /// True if read() may succeed: the record is known and the tier not disabled.
  bool may_hold(const RecordKey& key) const;

  /// Fills `into` with the record, or returns false, a miss: `into` is then
  /// undefined. A record of another length is a miss.
  bool read(const RecordKey& key, std::span<std::byte> into);

  /// Writes a record; true if it is held from now on. False: no room, or the
  /// tier is disabled.
  bool insert(const RecordKey& key, std::span<const std::byte> body);

  /// Frees a record that this tier has written or taken over; leaves others
  /// alone.
  void drop(const RecordKey& key);

  /// Marks a record that was taken over as known to the plan. False if there is
  /// no such record of ours.
  bool claim(const RecordKey& key);

  /// Frees records that were taken over and never claimed until `bytes` more
  /// fit: first those of other sources, then, if `of_own_source`, the rest.
  /// True if they fit now.
  bool make_room(std::uint64_t bytes, bool of_own_source);

  /// True if records of our source that were taken over are useful to the ranks
  /// that share this tier, though most are yet to be claimed: each rank claims
  /// only its own part.
  bool wants_strangers() const;

  /// Sets how much of the limit this writer may take from now on; nullopt: an
  /// even part. Records above that which were never claimed are freed; the
  /// caller must drop the others first.
  void set_share(std::optional<std::uint64_t> bytes);

  /// Picks up what other writers have done in the known segments: a read of
  /// each of their indexes, a small part of refresh().
  void catch_up();

  /// Picks up what other writers have done, takes over segments of dead ones,
  /// and counts the live ones that share the limit. If another job has joined,
  /// frees records above the share that were never claimed; the caller must
  /// drop the others.
  void refresh();

  /// The bytes held of records that this tier may drop, by record_cost().
  std::uint64_t used_bytes() const { return records_.used_bytes(); }
  /// The bytes that it may hold now: an even share among live writers, or the
  /// one from set_share(), but no more than others have left free.
  std::uint64_t allowed_bytes() const { return share_.allowed_bytes(); }
  /// False if the file system cannot punch holes: then nothing is freed, as the
  /// log has said.
  bool can_drop() const { return writer_.can_drop(); }
  std::uint64_t records() const { return records_.records(); }
  std::uint64_t segments() const { return records_.segments(); }
  /// The segments that this tier has made so far.
  std::uint64_t files_made() const { return writer_.files_made(); }
  const SegmentTierOptions& options() const { return options_; }

 private:
  SegmentTier(std::unique_ptr<SegmentFiles> files,
              const SegmentTierOptions& options, FileOps& ops,
              const Clock& clock, Metrics* metrics);

  void drop_held(const RecordKey& key) LEAT_REQUIRES(writing_);
  bool drop_strangers(std::deque<RecordKey>& strangers, std::uint64_t bytes)
      LEAT_REQUIRES(writing_);
  void shed_strangers() LEAT_REQUIRES(writing_);
  bool lease(std::uint64_t bytes) LEAT_REQUIRES(writing_);
  void return_lease() LEAT_REQUIRES(writing_);
  void count(Metric metric);

  const SegmentTierOptions options_;
  const std::unique_ptr<SegmentFiles> files_;
  const Clock& clock_;
  Metrics* const metrics_;
  TierHealth reading_health_;
  TierHealth writing_health_;
  RecordMap records_;

  /// A thread holds it while it changes files or the list of segments, for as
  /// long as the I/O takes. The methods of the next three members that any
  /// thread may call do not need it.
  Mutex writing_;
  LimitShare share_;
  SegmentWriter writer_;
  SegmentFollower follower_;
};

}  // namespace leat
