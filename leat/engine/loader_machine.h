// What a loader is made of. For loader.cc and loader_machine.cc alone.
#pragma once
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "leat/base/mutex.h"
#include "leat/engine/caches.h"
#include "leat/engine/loader.h"
#include "leat/engine/loader_tuning.h"
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
  Dataset dataset;
  LoaderOptions options;
  Rank rank;
  Tail tail = Tail::kKeep;
  OrderOptions order;
  std::shared_ptr<const BlockMap> blocks;
  RankShare share;       ///< Now. Its threads and requests change.
  RankShare usual;       ///< As the options say.
  RankShare most_share;  ///< The most that set_share() gives.
  const TimePoint opened = SteadyClock().now();
  std::unique_ptr<Trace> trace;  // Null: nobody asked for one.
  RankRun readers;  ///< Who reads what the cache of this rank keeps.
  std::shared_ptr<Metrics> metrics;
  std::vector<DeliveredField> fields;
  LearnedShapes shapes;
  std::unique_ptr<MemoryBudget> budget;
  std::unique_ptr<SlotPool> slots;
  std::vector<ScratchRef> scratch;
  std::unique_ptr<Executor> executor;
  CacheGround cache_ground;
  OpenedStore store;  ///< Its threads may still be leaving the executor.
  std::unique_ptr<RunContext> context;
  const pid_t pid = getpid();

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
  /// Where begin() starts and what state() saves.
  std::uint64_t epoch LEAT_GUARDED_BY(mutex) = 0;
  std::uint64_t position LEAT_GUARDED_BY(mutex) = 0;
  bool is_begun LEAT_GUARDED_BY(mutex) = false;  ///< stats.back() is of `run`.
  bool has_delivered LEAT_GUARDED_BY(mutex) = false;
  bool has_ended LEAT_GUARDED_BY(mutex) = false;
  /// From load_state() until a batch was delivered.
  bool is_resuming LEAT_GUARDED_BY(mutex) = false;
  std::optional<Error> failure LEAT_GUARDED_BY(mutex);

  /// How far the runs plan; none where pieces are read, each of which serves a
  /// whole window: they go as far as memory does.
  std::optional<Lookahead> lookahead LEAT_GUARDED_BY(mutex);
  /// When the last batch of this iteration was handed over.
  std::optional<TimePoint> delivered_at LEAT_GUARDED_BY(mutex);
  bool is_late LEAT_GUARDED_BY(mutex) = false;  ///< See begin_wait().
  Nanoseconds training LEAT_GUARDED_BY(mutex){0};

  std::optional<TimePoint> waiting_since LEAT_GUARDED_BY(mutex);
  TimePoint begun LEAT_GUARDED_BY(mutex);
  std::vector<EpochStats> stats LEAT_GUARDED_BY(mutex);
  /// A slot of each batch that the user may still hold.
  std::vector<std::weak_ptr<Slot>> handed_over LEAT_GUARDED_BY(mutex);
  bool has_warned LEAT_GUARDED_BY(mutex) = false;

  Mutex applying;  ///< Held by who brings settings into force, before `mutex`.
  Share allowed LEAT_GUARDED_BY(mutex);  ///< As set_share() was told.
  /// By the tuner; none where it is off.
  std::optional<Settings> chosen LEAT_GUARDED_BY(mutex);
  std::uint64_t data_bytes = 0;  ///< Of the dataset, for the tuner.
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
  void choose_what_is_open(const Limits& limits);
  /// What set_share() may give: what was asked for, or else a few times what
  /// was chosen.
  void choose_most(const Limits& limits);
  Result<void> configure_batches(const Env& env) LEAT_REQUIRES(mutex);
  void configure_order();
  void tell_shares(std::uint32_t ranks, std::size_t threads,
                   std::uint64_t memory) const;
  /// Puts the cache that was asked for in front of the store.
  Result<void> open_cache(const Limits& limits, const Launch& launch,
                          const Env& env);
  Result<std::optional<NextUse>> next_use(std::uint64_t which,
                                          std::uint64_t from) const
      LEAT_REQUIRES(mutex);
  void open_context();

  Result<void> check_open() const LEAT_REQUIRES(mutex);
  Result<void> check_current(Iteration mine) const LEAT_REQUIRES(mutex);
  Result<Steps> steps_from(std::uint64_t from) const LEAT_REQUIRES(mutex);
  Result<std::shared_ptr<EpochRun>> start(std::uint64_t which,
                                          std::uint64_t from,
                                          PlanLimits limits) const
      LEAT_REQUIRES(mutex);
  /// Makes `run` the one at (epoch, position), unless there is one. What it
  /// does not need of earlier runs goes to `unused`.
  Result<void> open_run(std::shared_ptr<EpochRun>& unused) LEAT_REQUIRES(mutex);
  /// Leaves what runs: the next begin() starts there. Returns the old run.
  std::shared_ptr<EpochRun> jump_to(std::uint64_t to_epoch,
                                    std::uint64_t to_position)
      LEAT_REQUIRES(mutex);
  void plan_ahead() LEAT_REQUIRES(mutex);
  /// Begins to look ahead for batches of the size that is set.
  void begin_lookahead() LEAT_REQUIRES(mutex);
  Result<void> open_trace();
  void write_trace(const BatchWork& work, Interval wait) LEAT_REQUIRES(mutex);
  /// Tells the runs how far they may plan.
  void look_ahead() LEAT_REQUIRES(mutex);
  /// The user asks for the next batch of `from`; late if it is not yet ready.
  void begin_wait(EpochRun& from) LEAT_REQUIRES(mutex);
  void count_requests() LEAT_REQUIRES(mutex);
  void add_counts(LoaderRates& rates) const;
  LoaderRates rates();
  Result<void> begin_tuning(const Env& env);
  Observation observe();
  /// The most that is allowed now.
  Settings most_settings() const LEAT_REQUIRES(mutex);
  /// Brings into force what is allowed and chosen.
  void apply_settings();
  /// With several ranks each has its own file: "t.json", "t.rank3.json".
  std::string of_this_rank(const std::string& file) const;
  void deliver(const BatchWork& work) LEAT_REQUIRES(mutex);
  void end_epoch() LEAT_REQUIRES(mutex);
  void watch_kept(const Batch& batch) LEAT_REQUIRES(mutex);
  /// Ends every thread. REQUIRES: closed, no visit, no run.
  void tear_down();
};

}  // namespace leat
