// A store with tiers in front of it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "leat/base/buffer.h"
#include "leat/base/mutex.h"
#include "leat/cache/fetch_turns.h"
#include "leat/cache/job_board.h"
#include "leat/cache/record_policy.h"
#include "leat/cache/segment_tier.h"
#include "leat/cache/tier_plan.h"
#include "leat/metrics/metrics.h"
#include "leat/runtime/executor.h"
#include "leat/store/record_cache.h"
#include "leat/store/store_wrapper.h"

namespace leat {

/// A tier and the policy that says what it keeps.
struct CacheTier {
  CacheLevel level = CacheLevel::kRam;
  std::unique_ptr<SegmentTier> tier;
  /// By record_cost(); its capacity is the limit of the tier.
  std::unique_ptr<RecordPolicy> policy;
  /// Outlives this process. A record without an ETag may change in between, and
  /// is not kept there. See TierPlan::Tier, which has these two.
  bool is_lasting = false;
  bool keeps_copies = false;
};

struct CachedStoreOptions {
  /// Stands in front of url_of() in the name of each record, to tell endpoints
  /// apart. Never holds credentials.
  std::string place;
  /// The time from one epoch to the next, in the time of hints. Records of the
  /// same source that an earlier run left are not freed before this run has
  /// been through an epoch.
  AccessTime epoch_time = kEpochTime;
  /// A read that nobody has is decided when it is sent, not when it comes: so
  /// a policy that goes by the order of reads alone is told that of the plan,
  /// whichever comes first. One that knows what comes next needs it not.
  bool decides_when_sent = false;
  std::size_t threads = 4;  ///< That look records up.
  /// Copies of records that wait to be written; past it they are not kept.
  std::uint64_t queue_bytes = std::uint64_t{64} << 20;
  /// How often the store looks for other writers, and for their writes: until a
  /// rank knows that another has fetched a record, it would fetch it again.
  Nanoseconds refresh_every = std::chrono::seconds(1);
  Nanoseconds catch_up_every = std::chrono::milliseconds(50);
};

/// The means by which several jobs over the same tiers agree; either may be
/// null.
struct CacheSharing {
  std::unique_ptr<RecordClaims> claims = nullptr;
  std::unique_ptr<JobBoard> board = nullptr;
  /// A record made from a range does not replace the range's bytes: there is
  /// room for those of all samples.
  bool keeps_bytes = false;
};

/// Answers a read that has a hint from the tiers, fastest first, else from the
/// inner store; TierPlan then decides which tier keeps it.
///
/// Look-ups run on threads of its own, in the order of `hint.now`: so the
/// caller waits for no disk, and a hit for no window of requests. Writing runs
/// on one more thread and delays nobody; records that come faster than a disk
/// can write are not kept, but counted. Memory refuses nothing: if all tiers
/// are in memory, the thread that brings a record copies it once the queue is
/// full, and the thread that makes one always does. A range that is wanted
/// while it is already on its way is not asked for twice. No failure of a tier
/// is ever a failure of a read.
///
/// It keeps what callers make of a range just as well, in the same tiers and by
/// the same policies: see RecordCache.
///
/// With CacheSharing, one job brings a record that several miss at once, and
/// records that another has yet to read in its running epoch go last.
///
/// Threads:  any; `done` runs on a thread of the inner store or on this one's.
/// Lifetime: as Store says. Destruction writes what is queued. `metrics` may be
///           null, else outlives the store.
class CachedStore final : public StoreWrapper, public RecordCache {
 public:
  CachedStore(std::unique_ptr<Store> inner, std::vector<CacheTier> tiers,
              CachedStoreOptions options, Metrics* metrics,
              CacheSharing sharing = {});
  ~CachedStore() override;

  void read(ReadRequest request, std::stop_token stop, ReadDone done) override;

  /// Bounds the records that this writer keeps in its tier of that level from
  /// now on; nullopt: an even part of the tier's limit. Returns at once: the
  /// policy drops the surplus, and the writing thread frees it. Nothing happens
  /// if there is no such tier.
  void set_share(CacheLevel level, std::optional<std::uint64_t> bytes);

  /// From `now` on reads come in another order: a job has gone back to a state,
  /// or on to a later epoch. The records that are held follow it at once: each
  /// record of a known sample by the answer of `next_use_of`, any other as if
  /// it were wanted now, until it is read. Takes a call for each record held.
  void begin_plan(AccessTime now,
                  const std::function<AccessTime(SampleId)>& next_use_of);

  /// Lets at least so many bytes wait to be written, though `queue_bytes` may
  /// be less; 0: as that says.
  void set_least_queue(std::uint64_t bytes);

  std::optional<std::uint64_t> record_bytes(const RecordId& id) const override;
  void find(FindRequest request, std::stop_token stop, FindDone done) override;
  void keep(const RecordId& id, std::span<const std::byte> record,
            const ReadHint& hint) override;

  void take_turn(const RecordId& id, std::stop_token stop,
                 std::function<void(bool is_there)> decided) override;
  void end_turn(const RecordId& id) override;
  bool is_coming(const RecordId& id) const override;
  /// Null unless jobs tell each other what they have yet to read.
  UseBoard* board() const { return sharing_with_.board.get(); }

  /// The limit of all tiers, which act as one, and of all writers.
  std::uint64_t limit_bytes() const;

  /// Waits until all that was offered so far is written or dropped: for tests.
  void drain();

 private:
  struct Flight;
  using FlightRef = std::shared_ptr<Flight>;

  /// The writes that follow from one decision.
  struct Write {
    std::vector<TierStep> steps = {};
    AccessTime now = 0;
    RecordKey key = {};
    std::span<const std::byte> body = {};  // The body of a kPut.
    BufferRef bytes = nullptr;  // The buffer that holds it; null: it is lent.
    bool* is_done = nullptr;    // Set by the waiting thread; guarded by turn_.
    /// For set_share(): the new share of the tier of this level, once the steps
    /// are done.
    std::optional<std::size_t> shared = std::nullopt;
    std::optional<std::uint64_t> share = std::nullopt;
  };

  /// A record in use: the decisions about it depend on this alone.
  struct Use {
    RecordKey key;
    ReadHint hint;
    std::span<const std::byte> bytes;
    bool has_etag = true;
    bool is_made = false;  ///< The record holds the bytes of a range.
    /// A record that goes where this one is taken.
    std::optional<RecordKey> instead_of = std::nullopt;
  };

  RecordKey key_of(const RecordId& id) const;
  static Use use_of(const Flight& flight);
  /// Frees a record of ours, if there is one: another one is in its place.
  void forget(const RecordKey& key) LEAT_EXCLUDES(mutex_);
  void see(AccessTime now) LEAT_EXCLUDES(mutex_);
  /// A read is looked up that the plan has at `now`.
  void ask(AccessTime now) LEAT_EXCLUDES(mutex_);
  void look_up(const FlightRef& flight);
  std::optional<CacheLevel> take(const Use& use, std::span<std::byte> into);
  std::optional<std::size_t> find_in_tiers(const RecordKey& key,
                                           std::span<std::byte> into);
  bool copy_queued(const Use& use, std::span<std::byte> into);
  void send(const FlightRef& flight);
  void fetch(const FlightRef& flight);
  void hear(const FlightRef& flight, Result<void> result);
  void answer_joined(const FlightRef& flight, const Result<void>& result);
  void decide_joined(const FlightRef& flight, const ReadHint& hint);
  void offer(const FlightRef& flight);
  void finish(const FlightRef& flight, Result<void> result);
  void count_hit(ReadRequest& request, CacheLevel level);
  void count_level(CacheLevel level);

  // shared_store.cc: the part for CacheSharing.

  /// The next use of bytes that stay beside records made of them: those are
  /// pushed out for the bytes, and never the other way round.
  static constexpr AccessTime kAlways = 0;
  struct HeldForOthers {
    PlannedRecord record;  ///< With the next use of this job.
    std::uint64_t sample = 0;
    /// The next use that the policy was told: that of the job that reads it
    /// next.
    AccessTime told = 0;
  };
  bool is_somewhere(const RecordKey& key) const;
  void see_files(bool has_new_files);
  void see_others();
  AccessTime own_next_use(const Use& use) const;
  /// As told, but for what this job never reads again.
  AccessTime plain_next_use(AccessTime told) const;
  AccessTime next_use_of_any(AccessTime own, std::uint64_t sample,
                             AccessTime now) const;
  void hold_for_others(const Use& use, const PlannedRecord& own, AccessTime any)
      LEAT_REQUIRES(deciding_);
  void follow_others() LEAT_REQUIRES(turn_);
  void follow_allowance() LEAT_REQUIRES(turn_);
  std::unique_ptr<FetchTurns> make_turns();
  void end_turn_of(const RecordKey& key);

  PlannedRecord planned(const Use& use) const;
  AccessTime next_use_of_any(const Use& use, const PlannedRecord& own) const;
  bool has_room_in_queue(std::uint64_t bytes);
  void decide_used(std::size_t level, const Use& use);
  void decide_fetched(const Use& use);
  void decide_sent(const FlightRef& flight);
  void keep_decided(const Use& use);
  void lose(const RecordKey& key);
  /// Finds the first use that nobody has asked for yet. True if it differs from
  /// the one that was told, because that one has been asked for.
  bool look_past_asked(const Use& use, AccessTime asked,
                       PlannedRecord& record) const LEAT_REQUIRES(deciding_);
  void plan_fetched(const Use& use, Write& write);
  void refuse(const RecordKey& key);
  void count_refusal();
  void write_at_once(const Use& use);
  void write_now(Write write, const Use& use);
  void queue(Write write, const Use& use, bool has_room);
  void write_queued(const std::stop_token& stop);
  bool write_next() LEAT_REQUIRES(turn_);
  void write_one(Write& write) LEAT_REQUIRES(turn_);
  void do_steps(const Write& write) LEAT_REQUIRES(turn_);
  void put(const TierStep& step, const Write& write) LEAT_REQUIRES(turn_);
  void drop(std::size_t level, const RecordKey& key);
  void move(const TierStep& step, const Write& write) LEAT_REQUIRES(turn_);
  void insert(std::size_t level, const RecordKey& key,
              std::span<const std::byte> bytes, AccessTime now)
      LEAT_REQUIRES(turn_);
  bool insert_later(std::size_t level, const RecordKey& key,
                    std::span<const std::byte> bytes) LEAT_REQUIRES(turn_);

  const CachedStoreOptions options_;
  Metrics* const metrics_;
  std::vector<CacheTier> tiers_;  // The vector and the tiers need no lock.
  const bool is_in_memory_;       ///< All of them.

  mutable Mutex mutex_;
  std::unordered_map<RecordKey, FlightRef, RecordKeyHash> flights_
      LEAT_GUARDED_BY(mutex_);
  /// Records that are queued or being written, so that a look-up finds them.
  std::unordered_map<RecordKey, BufferRef, RecordKeyHash> unwritten_
      LEAT_GUARDED_BY(mutex_);
  std::deque<Write> queue_ LEAT_GUARDED_BY(mutex_);
  std::uint64_t queued_bytes_ LEAT_GUARDED_BY(mutex_) = 0;
  std::uint64_t least_queue_ LEAT_GUARDED_BY(mutex_) = 0;
  std::size_t writing_ LEAT_GUARDED_BY(mutex_) = 0;  ///< Begun, not done.
  /// The latest use that was looked up in the running plan.
  AccessTime asked_ LEAT_GUARDED_BY(mutex_) = 0;
  /// When records left by earlier runs may be freed.
  std::optional<AccessTime> free_after_ LEAT_GUARDED_BY(mutex_);
  CondVar queued_;
  CondVar drained_;

  mutable Mutex deciding_;  ///< Never held together with mutex_.
  TierPlan plan_ LEAT_GUARDED_BY(deciding_);
  std::unordered_map<RecordKey, HeldForOthers, RecordKeyHash> for_others_
      LEAT_GUARDED_BY(deciding_);
  AccessTime latest_ LEAT_GUARDED_BY(deciding_) = 0;
  /// The capacities of the tiers that the policies were last told.
  std::vector<std::uint64_t> allowed_ LEAT_GUARDED_BY(deciding_);
  static constexpr std::uint64_t kNotTold = ~std::uint64_t{0};
  TimePoint follow_after_{};  ///< Used by the writing thread.
  Mutex sharing_;  ///< Held while a share is changed, before the others.
  /// Held while queued records are written, before the others.
  Mutex turn_;

  CacheSharing sharing_with_;
  std::unique_ptr<Executor> lookups_;
  std::unique_ptr<FetchTurns> turns_;  ///< Null: others are not asked.
  std::jthread writer_;                // Last: joined before the rest dies.
};

}  // namespace leat
