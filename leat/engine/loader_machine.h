// The parts of a loader. For loader.cc and loader_*.cc alone.
#pragma once
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "leat/base/mutex.h"
#include "leat/engine/agent_link.h"
#include "leat/engine/caches.h"
#include "leat/engine/ledger.h"
#include "leat/engine/loader.h"
#include "leat/engine/loader_state.h"
#include "leat/engine/loader_tuning.h"
#include "leat/engine/recent_trace.h"
#include "leat/engine/shard_stream.h"
#include "leat/engine/stores.h"
#include "leat/engine/trace.h"
#include "leat/engine/verdict.h"
#include "leat/pipeline/epoch_run.h"
#include "leat/plan/lookahead.h"
#include "leat/runtime/launcher.h"
#include "leat/runtime/limits.h"

namespace leat {

/// Everything that outlives a call. Members are destroyed from the last to the
/// first: runs before what they borrow.
struct Loader::Machine {
  /// While shards are being indexed it has no catalogue. Once that is done, it
  /// gets one under `mutex`, and with it `fields`, `blocks` and `context`.
  Dataset dataset;
  /// Until configure() is done with them.
  std::optional<UnindexedShards> unindexed;
  LoaderOptions options;
  Rank rank;
  Tail tail = Tail::kKeep;
  OrderOptions order;
  std::shared_ptr<GivenOrder> told_order;  ///< Null unless `options.is_given`.
  std::string data_digest;  ///< Says in a state which data it is of.
  std::shared_ptr<const BlockMap> blocks;
  RankShare share;       ///< Now. Its threads and requests change.
  RankShare usual;       ///< As the options say.
  RankShare most_share;  ///< The most that set_share() gives.
  /// The most that the tuner may choose without a share.
  RankShare most_alone;
  Share most_cache;  ///< The same for the tiers that there are.
  /// The jobs of this user that share the cache; empty: it is the job's own.
  std::string shared_cache;
  const TimePoint opened_at = SteadyClock().now();
  std::unique_ptr<Trace> trace;  // Null: nobody asked for one.
  RecentTrace recent;
  RankRun readers;  ///< The ranks that read the records of this rank's cache.
  /// Nullopt unless samples are dealt to holders.
  std::optional<HolderDealingOptions> holders;
  std::shared_ptr<Metrics> metrics;
  std::vector<DeliveredField> fields;
  LearnedShapes shapes;
  PartBytes part_bytes;
  std::unique_ptr<MemoryBudget> budget;
  std::unique_ptr<SlotPool> slots;
  std::vector<ScratchRef> scratch;
  std::unique_ptr<Executor> executor;
  CacheGround cache_ground;
  OpenedStore store;  ///< Its threads may still be leaving the executor.
  /// Below the caches of `store`; null: there was a catalogue.
  ReadAheadStore* ahead = nullptr;
  /// Null where no sample is kept decoded. Outlives the runs.
  std::unique_ptr<DecodedForm> decoded;
  /// True once open_form() has settled the form of the cache.
  bool has_form = false;
  /// As DecodedForm's limits have it; nullopt: not known when it was opened.
  std::optional<std::uint64_t> form_samples;
  bool form_may_mix = true;
  /// The bytes of records that the cache may hold.
  std::uint64_t cache_bytes = 0;
  std::unique_ptr<RunContext> context;
  /// The memory of the runs over parts: `stream_memory` has it, and that of
  /// reading ahead, out of `budget`.
  std::unique_ptr<MemoryBudget> part_budget;
  std::unique_ptr<ShardStream> stream;  ///< Null: there was a catalogue.
  const pid_t pid = getpid();

  std::unique_ptr<AgentLink> link;  ///< Null: no agent is looked for.

  Mutex closing;  ///< Held by the one call of close() that works.
  mutable Mutex mutex;
  CondVar left;  ///< Notified when the last visit ends.
  std::size_t visits LEAT_GUARDED_BY(mutex) = 0;
  bool is_closed LEAT_GUARDED_BY(mutex) = false;

  /// The runs of `epoch` and of the one after it, if they have been started.
  std::shared_ptr<EpochRun> run LEAT_GUARDED_BY(mutex);
  std::shared_ptr<EpochRun> next_run LEAT_GUARDED_BY(mutex);
  std::uint64_t iteration LEAT_GUARDED_BY(mutex) = 0;
  std::uint64_t global_batch LEAT_GUARDED_BY(mutex) = 0;
  /// The place where begin() starts and that state() saves.
  std::uint64_t epoch LEAT_GUARDED_BY(mutex) = 0;
  std::uint64_t position LEAT_GUARDED_BY(mutex) = 0;
  /// Belongs to that position: see LoaderState.
  std::vector<std::uint64_t> left_behind LEAT_GUARDED_BY(mutex);
  bool is_begun LEAT_GUARDED_BY(mutex) = false;  ///< stats.back() is of `run`.
  bool has_delivered LEAT_GUARDED_BY(mutex) = false;
  bool has_ended LEAT_GUARDED_BY(mutex) = false;
  /// Digest of the order that the state went by, within `epoch`; empty: none.
  std::string resumed_order LEAT_GUARDED_BY(mutex);
  /// From load_state() until a batch was delivered.
  bool is_resuming LEAT_GUARDED_BY(mutex) = false;
  /// Since the last run began, reads have been put into another order.
  bool is_another_plan LEAT_GUARDED_BY(mutex) = false;
  std::optional<Error> failure LEAT_GUARDED_BY(mutex);

  /// `epoch` is run in parts; `run` is over one, and `next_run`, if any, too.
  bool is_in_parts LEAT_GUARDED_BY(mutex) = false;
  std::uint64_t epoch_of_parts LEAT_GUARDED_BY(mutex) = 0;
  bool has_last_part LEAT_GUARDED_BY(mutex) = false;
  /// The start of the part behind the one that was started last.
  std::uint64_t next_part LEAT_GUARDED_BY(mutex) = 0;
  std::uint64_t steps_of_parts LEAT_GUARDED_BY(mutex) = 0;
  Reservation stream_memory LEAT_GUARDED_BY(mutex);
  RunRequests of_earlier_parts LEAT_GUARDED_BY(mutex);
  bool waits_for_shards LEAT_GUARDED_BY(mutex) = false;

  /// How far the runs plan; none where pieces are read, each of which serves a
  /// whole window: they go as far as memory does.
  std::optional<Lookahead> lookahead LEAT_GUARDED_BY(mutex);
  /// When the last batch of this iteration was handed over.
  std::optional<TimePoint> delivered_at LEAT_GUARDED_BY(mutex);
  bool is_late LEAT_GUARDED_BY(mutex) = false;  ///< See begin_wait().
  Nanoseconds training LEAT_GUARDED_BY(mutex){0};
  std::deque<StepWait> waits LEAT_GUARDED_BY(mutex);  // See take_waits().

  Pricing pricing;
  std::unique_ptr<EnergyCount> energy;  ///< Null until it is opened.
  std::optional<TimePoint> waiting_since LEAT_GUARDED_BY(mutex);
  /// Counted for rates().
  std::uint64_t reads_over LEAT_GUARDED_BY(mutex) = 0;
  TimePoint begun LEAT_GUARDED_BY(mutex);
  ThreadTimes threads_at_begin LEAT_GUARDED_BY(mutex);
  std::vector<EpochStats> stats LEAT_GUARDED_BY(mutex);
  RollingStalls rolling LEAT_GUARDED_BY(mutex){SteadyClock().now()};
  /// A slot of each batch that the user may still hold.
  std::vector<std::weak_ptr<Slot>> handed_over LEAT_GUARDED_BY(mutex);
  bool has_warned LEAT_GUARDED_BY(mutex) = false;

  mutable Mutex choosing;  ///< Taken last.
  /// The form of the cache, once it has been chosen by measurements, even if it
  /// stays as it is.
  struct FormChosen {
    Decision decision;
    std::uint64_t epoch = 0;  ///< In which it was.
    /// A sample, all kept as bytes, by the model; 0: it was not asked.
    double encoded_seconds = 0;
    double cores = 1;
  };
  std::optional<FormChosen> form_chosen LEAT_GUARDED_BY(choosing);

  Mutex applying;  ///< Held to apply settings, before `mutex`.
  Share allowed LEAT_GUARDED_BY(mutex);      ///< As set_share() was told.
  Share cache_share LEAT_GUARDED_BY(mutex);  ///< As its tiers were told.
  /// See Loader::pace() and set_pace_elsewhere().
  std::optional<Pace> pace LEAT_GUARDED_BY(mutex);
  std::optional<Pace> elsewhere LEAT_GUARDED_BY(mutex);
  /// How that has changed; at most the last kKeptShares.
  std::deque<Decision> cache_decisions LEAT_GUARDED_BY(mutex);
  /// By the tuner; none where it is off.
  std::optional<Settings> chosen LEAT_GUARDED_BY(mutex);
  /// Bytes of all objects; 0 if neither cache nor tuner asks.
  std::uint64_t data_bytes = 0;
  /// Last: its thread ends before what it watches.
  std::unique_ptr<LoaderTuning> tuning;

  /// A call that works with runs: close() waits until none is left. The first
  /// thing such a call makes, so that it ends last.
  class Visit {
   public:
    explicit Visit(Machine* machine) : machine_(machine) {}
    Visit(Visit&& other) noexcept
        : machine_(std::exchange(other.machine_, nullptr)) {}
    Visit& operator=(Visit&&) = delete;
    ~Visit();

   private:
    Machine* machine_;
  };
  /// Errors: kInvalidArgument in a forked child, or if closed.
  Result<Visit> enter();

  Result<void> configure(const Env& env);
  /// Puts into `options` what they leave open.
  Result<void> choose_what_is_open(const Limits& limits);
  /// Chooses the most that set_share() may give: the options, or else a few
  /// times the chosen values.
  void choose_most(const Limits& limits);
  Result<void> configure_batches(const Env& env) LEAT_REQUIRES(mutex);
  /// REQUIRES: there is a catalogue.
  Result<void> check_world_size() const;
  /// Errors: kInvalidArgument: no such steps from position `from` on, or some
  ///         ranks would get a batch less than others, and nobody said join
  Result<void> check_steps(std::uint64_t from) const LEAT_REQUIRES(mutex);
  Result<void> check_steps_of(std::uint64_t which, std::uint64_t from) const
      LEAT_REQUIRES(mutex);
  void configure_order();
  void open_blocks();
  std::uint64_t bytes_of_data() const;
  Hash128 digest_of_data() const;
  void tell_shares(std::uint32_t ranks, std::size_t threads,
                   std::uint64_t memory) const;
  /// Puts the cache that was asked for in front of the store.
  Result<void> open_cache(const Limits& limits, const Launch& launch,
                          const Env& env);
  CacheNeeds cache_needs(const Launch& launch) const;

  // loader_placement.cc
  /// Where among the peers each sample lies, by how often nodes read it.
  /// Errors: kInvalidArgument: it cannot be known, or not one server a node;
  ///         as nodes_by_frequency
  Result<std::shared_ptr<const std::vector<std::uint16_t>>> place_peers(
      std::uint32_t local_ranks) const LEAT_REQUIRES(mutex);
  /// Errors: kInvalidArgument: it cannot be known what tiers are to hold
  Result<void> check_placement() const;
  /// The samples that each tier may hold, for CacheNeeds; by the order from
  /// epoch 0 on, wherever training begins. REQUIRES: choose_cache() has made
  /// the options, and `readers` are known.
  /// Errors: kInvalidArgument: it cannot be known; as place_by_frequency
  Result<std::vector<std::function<bool(SampleId)>>> place_in_tiers(
      std::uint32_t local_ranks) const LEAT_REQUIRES(mutex);
  /// Errors: kInvalidArgument: samples were placed for another global batch
  Result<void> check_placed_for(const LoaderState& state) const
      LEAT_REQUIRES(mutex);

  /// The records of the tiers; null: there are none.
  RecordCache* records() const;

  // loader_locality.cc
  /// Errors: kInvalidArgument: there is no cache, or its sizes are left open
  Result<void> check_locality() const;
  /// Fills in `holders`, once the cache is open and there is a catalogue;
  /// before that only checks what can be. Errors: as HolderDealing::make
  Result<void> plan_locality(std::uint32_t local_ranks) LEAT_REQUIRES(mutex);
  /// The cost of each sample in a tier, kept as bytes. REQUIRES: there is a
  /// catalogue.
  std::function<std::uint64_t(SampleId)> costs_of_samples() const;
  /// For a run that begins in epoch `which`.
  /// Errors: as HolderDealing::make; kInvalidArgument: too far to simulate
  Result<std::unique_ptr<HolderDealing>> make_dealing(std::uint64_t which) const
      LEAT_REQUIRES(mutex);

  // loader_first_within.cc: cached samples first.
  std::uint64_t first_within() const {
    return options.cache ? options.cache->first_within : 0;
  }
  /// Errors: kInvalidArgument: samples are not read one by one, or dealt by
  /// locality
  Result<void> check_first_within() const;
  /// Errors: kInvalidArgument: a state that this loader cannot go on from
  Result<void> check_left_behind(const LoaderState& state) const
      LEAT_REQUIRES(mutex);
  Result<std::optional<ReadyFirst>> ready_first(
      const Steps& steps, const std::vector<std::uint64_t>& behind) const;

  /// By the fields that are delivered, once they are known; does nothing if it
  /// was done. REQUIRES: the cache is open, if there is one.
  Result<void> open_form(const std::vector<DeliveredField>& with);
  void choose_form_by(const DecodedForm::Findings& found);
  /// Fills in the gain of the cache's form, from an epoch that is over.
  void judge_form(const EpochStats& at);
  Locality locality() const {
    return rank.world_size > 1 ? options.locality : Locality::kNone;
  }
  /// Errors: kInvalidArgument: samples are not asked for one by one
  Result<void> check_fetch_ahead() const;
  /// All options but the question itself.
  NextUseOptions next_use_options(std::uint64_t which, std::uint64_t from) const
      LEAT_REQUIRES(mutex);
  /// None without a cache.
  Result<std::optional<NextUse>> next_use(std::uint64_t which,
                                          std::uint64_t from) const
      LEAT_REQUIRES(mutex);
  RunContext context_over(Store& from, const Catalogue& catalogue,
                          const std::vector<DeliveredField>& with,
                          std::shared_ptr<const BlockMap> cut,
                          MemoryBudget& within);
  /// Chooses fields and cuts blocks. REQUIRES: there is a catalogue.
  Result<void> open_catalogue();
  void open_context();

  // loader_parts.cc: the first epoch over shards that nobody has indexed.
  StreamOptions stream_options() const;
  /// The bytes that the cache has yet to write, in the first epoch of a stream.
  std::uint64_t stream_queue_bytes() const;
  /// Puts what reads ahead in front of the store, and begins.
  void open_ahead();
  Result<void> open_stream(const Env& env) LEAT_REQUIRES(mutex);
  /// Takes the catalogue of the stream, if there is one by now.
  Result<void> adopt_catalogue() LEAT_REQUIRES(mutex);
  /// A run over the part that begins at `from`; null while that is not known.
  Result<std::shared_ptr<EpochRun>> start_part(std::uint64_t from)
      LEAT_REQUIRES(mutex);
  Result<std::optional<NextUse>> next_use_of(
      const StreamPart& part, const std::shared_ptr<const BlockMap>& cut,
      std::uint64_t from) const LEAT_REQUIRES(mutex);
  /// The run has ended: goes on with the next part. False at the epoch's end.
  bool leave_part() LEAT_REQUIRES(mutex);
  /// No more parts, in any case.
  void leave_parts() LEAT_REQUIRES(mutex);
  void give_stream_memory_back() LEAT_REQUIRES(mutex);
  /// Counts what has been waited for shards so far.
  void count_scan_wait() LEAT_REQUIRES(mutex);
  RunRequests requests_of_parts() const LEAT_REQUIRES(mutex);

  // loader_given.cc: orders that are no permutations.
  void configure_drawn();
  /// Errors: kInvalidArgument: an option that needs to know where each sample
  ///         stands; weights of another number of samples
  Result<void> check_drawn() const;
  /// As LoaderState has it.
  std::optional<DrawnState> drawn_now() const LEAT_REQUIRES(mutex);
  Result<void> check_known(std::uint64_t which) const;

  std::optional<std::uint64_t> samples() const LEAT_REQUIRES(mutex);
  /// Positions of an epoch; nullopt: not known yet.
  std::optional<std::uint64_t> samples_in(std::uint64_t which) const
      LEAT_REQUIRES(mutex);
  LoaderState state_now() const LEAT_REQUIRES(mutex);
  Result<void> check_open() const LEAT_REQUIRES(mutex);
  Result<void> check_current(Iteration mine) const LEAT_REQUIRES(mutex);
  /// The steps of the running epoch.
  Result<Steps> steps_from(std::uint64_t from) const LEAT_REQUIRES(mutex) {
    return steps_of(epoch, from);
  }
  Result<Steps> steps_of(std::uint64_t which, std::uint64_t from) const
      LEAT_REQUIRES(mutex);
  Result<std::shared_ptr<EpochRun>> start(
      std::uint64_t which, std::uint64_t from, PlanLimits limits,
      std::unique_ptr<HolderDealing> dealing = nullptr,
      const std::vector<std::uint64_t>& behind = {}) const LEAT_REQUIRES(mutex);
  /// Makes `run` the one at (epoch, position), unless there is one; leaves it
  /// null while shards have yet to be indexed. Moves earlier runs that it does
  /// not need to `unused`.
  Result<void> open_run(std::shared_ptr<EpochRun>& unused) LEAT_REQUIRES(mutex);
  /// Leaves what runs: the next begin() starts there. Returns the old run.
  std::shared_ptr<EpochRun> jump_to(std::uint64_t to_epoch,
                                    std::uint64_t to_position)
      LEAT_REQUIRES(mutex);
  /// Tells the cache, if reads were put into another order, when what it holds
  /// is read next from here on.
  Result<void> begin_plan() LEAT_REQUIRES(mutex);
  void plan_ahead() LEAT_REQUIRES(mutex);
  /// Begins to look ahead for batches of the size that is set.
  void begin_lookahead() LEAT_REQUIRES(mutex);
  /// Looks for the agent of this node, which is told and heeded through
  /// `loader`.
  void open_link(Loader& loader, const Env& env);
  Result<void> open_trace();
  void write_trace(const BatchWork& work, Interval wait) LEAT_REQUIRES(mutex);
  /// Tells the runs how far they may plan.
  void look_ahead() LEAT_REQUIRES(mutex);
  /// The user asks for the next batch of `from`; late if it is not yet ready.
  /// Null: for shards to be indexed.
  void begin_wait(EpochRun* from) LEAT_REQUIRES(mutex);
  void count_requests() LEAT_REQUIRES(mutex);
  void add_counts(LoaderRates& rates) const;
  void add_form(LoaderRates& rates) const;
  double form_bytes(const LoaderRates& rates) const;
  /// Brings prices and energy in `metrics` up to date.
  void keep_ledger() const;
  std::string ledger() const;
  ThreadTimes thread_times() const;
  LoaderRates rates();
  Result<void> begin_tuning(const Env& env);
  Observation observe();
  /// The most that is allowed now.
  Settings most_settings() const LEAT_REQUIRES(mutex);
  /// As LoaderRates has it. A cache finds what it keeps by its range, and what
  /// indexes shards reads them as they come.
  std::uint64_t tunable_part_bytes() const {
    return options.cache || stream != nullptr ? 0 : part_bytes.now();
  }
  /// Brings into force what is allowed and chosen.
  void apply_settings();
  /// Takes what is allowed of a tier into `cache_share`, with a line if that
  /// changes what it may hold. True if the tier has to be told.
  bool has_new_cache_share(Setting setting,
                           std::optional<std::uint64_t> Share::*tier)
      LEAT_REQUIRES(mutex);
  /// With several ranks each has its own file: "t.json", "t.rank3.json".
  std::string of_this_rank(const std::string& file) const;
  /// In the epoch that runs, the last minute and the metrics.
  void count_wait(TimePoint now, const StallTimes& times) LEAT_REQUIRES(mutex);
  void deliver(const BatchWork& work) LEAT_REQUIRES(mutex);
  void keep_wait(const StallTimes& times) LEAT_REQUIRES(mutex);
  void end_epoch() LEAT_REQUIRES(mutex);
  /// Says once an epoch that others come in the place of bad samples, and
  /// afterwards of how many.
  void tell_first_bad(const BatchWork& work) const LEAT_REQUIRES(mutex);
  void tell_substituted() const LEAT_REQUIRES(mutex);
  void watch_kept(const Batch& batch) LEAT_REQUIRES(mutex);
  /// Ends every thread. REQUIRES: closed, no visit, no run.
  void tear_down();
};

}  // namespace leat
