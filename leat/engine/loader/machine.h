// The values that make up a loader, connected. For the files of this folder
// alone.
#pragma once
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "leat/base/mutex.h"
#include "leat/engine/loader/account.h"
#include "leat/engine/loader/cache_form_choice.h"
#include "leat/engine/loader/control.h"
#include "leat/engine/loader/costs.h"
#include "leat/engine/loader/job.h"
#include "leat/engine/loader/kept_batches.h"
#include "leat/engine/loader/loader.h"
#include "leat/engine/loader/opened.h"
#include "leat/engine/loader/position.h"
#include "leat/engine/loader/runs.h"
#include "leat/engine/loader/schedule.h"
#include "leat/engine/loader/stream_parts.h"
#include "leat/engine/loader_state.h"
#include "leat/engine/order_log/writer.h"

namespace leat {

/// Holds everything that outlives a call: docs/design/0019. Members are
/// destroyed from the last to the first: runs before what they borrow.
struct Loader::Machine {
  // Set while the loader is opened; then constant, or with their own locks.
  Job job;
  const pid_t pid = getpid();
  const TimePoint opened_at = SteadyClock().now();
  Opened opened;
  std::unique_ptr<Schedule> schedule;  ///< Under the loader's lock.
  std::unique_ptr<LoaderCosts> costs;
  std::unique_ptr<Account> account;
  std::unique_ptr<Control> control;
  std::unique_ptr<CacheFormChoice> form;
  std::unique_ptr<StreamParts> parts;  ///< Null: the data had a catalogue.
  std::unique_ptr<OrderLogWriter> order_log;  ///< Null: no user asked for one.

  Mutex closing;  ///< Held by the one close() call that does the work.
  /// The loader's lock. While it is held, only single values' locks are taken.
  mutable Mutex mutex;
  CondVar left;  ///< Notified when the last visit ends.
  std::size_t visits LEAT_GUARDED_BY(mutex) = 0;
  bool is_closed LEAT_GUARDED_BY(mutex) = false;
  Position position LEAT_GUARDED_BY(mutex);
  KeptBatches kept LEAT_GUARDED_BY(mutex);
  std::unique_ptr<Runs> runs LEAT_GUARDED_BY(mutex);

  ~Machine();

  /// A call that uses runs: close() waits until no such call remains. Such a
  /// call creates this first, so that it is destroyed last.
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
  /// Errors: kInvalidArgument in a forked child, or after close().
  Result<Visit> enter();
  Result<void> check_open() const LEAT_REQUIRES(mutex);
  Result<void> check_current(Iteration mine) const LEAT_REQUIRES(mutex);

  // open.cc
  Result<void> open(LoaderSource source, LoaderOptions options, const Env& env);
  Result<void> open_values(std::optional<UnindexedShards> shards,
                           const Env& env);
  Result<void> open_runs(std::optional<UnindexedShards> shards, const Env& env);
  Result<void> open_order_log();
  Result<void> begin_tuning(const Env& env);
  /// Looks for the agent of this node.
  void join_agent(const Env& env);

  /// Takes the current run's next batch if it is ready.
  Result<Next> take_from(EpochRun& run) LEAT_REQUIRES(mutex);

  // machine.cc
  LoaderState state_now() const LEAT_REQUIRES(mutex);
  /// Errors: kInvalidArgument: this loader cannot continue from the state
  Result<void> check_left_behind(const LoaderState& state) const
      LEAT_REQUIRES(mutex);
  /// Continues with the state's global batch. REQUIRES: the batch size is given
  /// per rank. Errors: kInvalidArgument: this is not possible
  Result<void> take_batch_of(const LoaderState& state) LEAT_REQUIRES(mutex);
  /// Moves the position, where begin() then starts. Returns the old runs.
  Runs::Left jump_to(std::uint64_t to_epoch, std::uint64_t to_position)
      LEAT_REQUIRES(mutex);
  /// The user asks for the next batch of `from`; null: shards have yet to be
  /// indexed.
  void begin_wait(EpochRun* from) LEAT_REQUIRES(mutex);
  void deliver(BatchWork& work) LEAT_REQUIRES(mutex);
  /// Says in the order log that the next batch need not follow the last one.
  void expect_start();
  void end_epoch() LEAT_REQUIRES(mutex);
  LoaderTotals totals();
  Observation observe();
  /// Applies what is allowed and chosen.
  void apply_settings();
};

}  // namespace leat
