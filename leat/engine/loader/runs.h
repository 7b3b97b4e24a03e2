// The runs of a loader: the current epoch's and the next one's.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "leat/base/result.h"
#include "leat/engine/loader/account.h"
#include "leat/engine/loader/cache_form_choice.h"
#include "leat/engine/loader/control.h"
#include "leat/engine/loader/opened.h"
#include "leat/engine/loader/position.h"
#include "leat/engine/loader/schedule.h"
#include "leat/engine/loader/stream_parts.h"
#include "leat/pipeline/epoch_run.h"
#include "leat/plan/lookahead.h"

namespace leat {

/// Starts runs at the position, over the whole catalogue or over the parts of a
/// stream, and bounds how far they may plan.
///
/// Threads: one at a time: the loader's lock. Lifetime: the others must outlive
/// it and the runs that it returns.
class Runs {
 public:
  Runs(const Job& job, Schedule& schedule, Opened& opened,
       CacheFormChoice& form, const Control& control, Account& account);

  /// From now on uses the schedule's catalogue. REQUIRES: there is one.
  void begin_whole();
  /// From now on uses these parts, until there is a catalogue. They outlive it.
  void begin_in_parts(StreamParts& parts);

  /// Null before open(), and while shards have yet to be indexed.
  const std::shared_ptr<EpochRun>& current() const { return run_; }
  /// Makes current() the run at the position, unless there is one already. An
  /// earlier run that is not needed moves to `unused`.
  /// Errors: those of the schedule, the parts and the catalogue
  Result<void> open(const Position& position,
                    std::shared_ptr<EpochRun>& unused);
  /// Runs that are given up.
  struct Left {
    std::shared_ptr<EpochRun> run;
    std::shared_ptr<EpochRun> next;
  };
  /// Gives up the current run in favour of one that will begin elsewhere, and
  /// the next one if that is of a part and parts are over.
  Left leave(const Position& position, std::uint64_t to_epoch,
             std::uint64_t to_position);
  /// Returns the next run, which is no longer wanted; null if there is none.
  /// The same, but only if it is of that epoch, or only if it is of another.
  std::shared_ptr<EpochRun> drop_next() { return std::move(next_); }
  std::shared_ptr<EpochRun> drop_next_of(std::uint64_t epoch);
  std::shared_ptr<EpochRun> drop_next_unless(std::uint64_t epoch);
  /// Gives up everything, for good.
  Left end();
  /// The run has ended: continues with the next part. False after the last.
  bool leave_part();
  /// The epoch is over.
  void end_epoch();

  /// Once all of the current run has been sent, begins to fetch the next: all
  /// of it if it is certain to come, otherwise at most a window.
  void plan_ahead();
  /// Tells the runs how far they may plan.
  void look_ahead();
  /// Begins to plan ahead for batches of the size that is set.
  void begin_lookahead();
  /// Training took a batch, in that step.
  void took(const BatchWork& work, const std::optional<Account::Step>& step);
  void ask_for_at_least(std::uint64_t samples);
  /// The number of samples that may be planned; 0: bounded by memory alone.
  std::uint64_t lookahead() const;

  /// Reads will come in another order than in the last run.
  void expect_another_plan() { is_another_plan_ = true; }
  /// Whether skipped samples can still be delivered.
  bool can_go_back() const;
  /// Counts the requests of the runs.
  void count_requests();

 private:
  Result<std::shared_ptr<EpochRun>> start(
      std::uint64_t epoch, std::uint64_t from, const PlanLimits& limits,
      std::unique_ptr<HolderDealing> dealing,
      const std::vector<std::uint64_t>& behind) const;
  Result<std::shared_ptr<EpochRun>> start_part(std::uint64_t epoch,
                                               std::uint64_t from);
  Result<void> adopt_catalogue();
  Result<void> begin_cache_plan(const Position& position);

  const Job& job_;
  Schedule& schedule_;
  Opened& opened_;
  CacheFormChoice& form_;
  const Control& control_;
  Account& account_;
  StreamParts* parts_ = nullptr;         // Null: the data had a catalogue.
  bool is_in_parts_ = false;             // If so, both runs are over parts.
  std::unique_ptr<RunContext> context_;  // Null: there is no catalogue yet.
  std::shared_ptr<EpochRun> run_;
  std::shared_ptr<EpochRun> next_;
  /// None where pieces are read, each of which serves a whole window: then
  /// memory alone is the bound.
  std::optional<Lookahead> lookahead_;
  bool is_another_plan_ = false;
};

}  // namespace leat
