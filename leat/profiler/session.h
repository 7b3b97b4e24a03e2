// All the runs of a profile, in turn.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "leat/base/result.h"
#include "leat/profile/step_parts.h"
#include "leat/profiler/launch.h"
#include "leat/profiler/page_cache.h"
#include "leat/profiler/relay.h"
#include "leat/profiler/trial.h"

namespace leat {

struct SessionOptions {
  TrialPlace place;
  /// How the whole training is started; fewer processes come of it.
  LaunchPlan launch;
  /// Measured in each run; as many fewer as make each of a rank's workers give
  /// equally many batches (whole_turns).
  std::uint32_t steps = 50;
  std::uint32_t warmup = 10;
  std::uint32_t repeats = 3;
  std::uint32_t replayed = 4;  ///< At most warmup + 1 are.
  /// The S3 endpoint that the script is given. Null: none, as for a script that
  /// does not run here (launch.h).
  Relay* relay = nullptr;
  /// Hears which run begins: "repeat 1 of 3: cold". May be empty.
  std::function<void(std::string_view)> progress;
};

/// The results of the runs, before any conclusion.
struct TrainingTrials {
  std::vector<ProfiledRun> runs;
  /// Seconds for a batch when nobody trains on it, on the slowest rank, by run
  /// of that condition in which all ranks could tell.
  std::vector<double> warm_supply_seconds;
  std::vector<double> cold_supply_seconds;
  /// CPU seconds for a rank's batch, likewise, in the warm runs; none if they
  /// could not be read.
  std::vector<double> warm_supply_cpu_seconds;
  /// The slowest rank's steps in the last cold run, and its time in next() in
  /// each.
  std::vector<double> cold_step_seconds;
  std::vector<double> cold_wait_seconds;
  /// The same of every rank of that run, in order of rank.
  struct RankSteps {
    std::vector<double> step_seconds;
    std::vector<double> wait_seconds;
  };
  std::vector<RankSteps> cold_ranks;
  /// This machine's power draw in cold runs, if it can be read; empty for
  /// trainings over several nodes.
  std::vector<double> cold_processor_watts;
  std::vector<double> cold_accelerator_watts;
  /// In the last cold run, while its steps were measured: the batches that all
  /// ranks were given, and the traffic that made them.
  std::uint64_t cold_batches = 0;
  RelayCounts cold_batch_reads;
  /// The reading of a timer inside the script in cold runs: the share of the
  /// slowest rank's steps that it spends in next().
  std::vector<double> naive_wait_fractions;
  /// Files that the script read: the part in memory after warm runs, and before
  /// cold ones.
  std::size_t files = 0;
  std::vector<Residency> warm_files;
  std::vector<Residency> cold_files;
  /// The traffic through the relay in the same runs.
  std::vector<RelayCounts> warm_reads;
  std::vector<RelayCounts> cold_reads;
  /// Why there is no warm run, or empty.
  std::string why_no_warm;
  std::vector<std::string> connects_to;  ///< As Trial has it.
  /// Rows of a rank's batch; 0 if batches hold no array.
  std::uint64_t rows = 0;
  std::uint64_t epoch_batches = 0;  ///< Batches of a rank; 0: not known.
  /// Processes of a rank that make its batches; none: threads do.
  std::optional<std::uint64_t> workers;
  bool loads_ahead = false;   ///< As RankRecord has it.
  bool is_pipelined = false;  ///< Likewise.
  /// The gradients that data-parallel ranks reduce in a step; 0: nothing known.
  std::uint64_t gradient_bytes = 0;
  std::uint64_t gradient_buckets = 0;
  std::string loader;
  std::string accelerator;
  std::string torch;
};

/// The most of `steps` in which each of a rank's workers gives equally many
/// batches. They begin together and end together, so a batch of each comes soon
/// after the other and then none for long: a mean over more depends on the cut.
/// All, if there are more workers than steps.
std::uint32_t whole_turns(std::uint32_t steps,
                          std::optional<std::uint64_t> workers);

/// Runs the training once to see what it does. Then runs it `repeats`
/// times under each condition that applies to it, alternating between
/// conditions. Blocks.
///
/// Errors: as run_trial
Result<TrainingTrials> run_session(const SessionOptions& options,
                                   const std::stop_token& stop);

}  // namespace leat
