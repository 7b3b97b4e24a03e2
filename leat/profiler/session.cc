#include "leat/profiler/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "leat/runtime/limits.h"

namespace leat {
namespace {

/// Above this share of bytes left in memory, files have not been made cold.
constexpr double kMostLeftCold = 0.1;
/// Above this share of reads that the store still answers, it is not warm.
constexpr double kMostReadWarm = 0.02;
/// The most runs that only fill the relay's memory.
constexpr int kMostFillRuns = 2;
/// The first run, and those that fill, read this many times further than a
/// measured run: the requests of a loader when its process ends differ from run
/// to run, and each run is to find all of them read.
constexpr std::uint32_t kFirstReadsFurther = 3;
constexpr std::uint32_t kFillReadsFurther = 2;
/// While a run is to find files in memory, one part of memory in this many may
/// be kept for them.
constexpr std::uint64_t kKeptOfMemory = 4;

double sum(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

double share_resident(const Residency& files) {
  return files.bytes == 0 ? 0
                          : static_cast<double>(files.resident_bytes) /
                                static_cast<double>(files.bytes);
}

class Session {
 public:
  Session(const SessionOptions& options, const std::stop_token& stop)
      : options_(options), stop_(stop), steps_(options.steps) {}

  Result<TrainingTrials> run() {
    LEAT_TRY_VOID(look());
    const std::vector<Condition> conditions = conditions_to_run();
    for (std::uint32_t repeat = 0; repeat < options_.repeats; ++repeat) {
      for (const Condition condition : conditions) {
        say(fmt::format("repeat {} of {}: {}", repeat + 1, options_.repeats,
                        to_string(condition)));
        Result<void> done = measure(condition);
        if (!done) {
          return std::move(done).error().while_doing(
              fmt::format("the run \"{}\"", to_string(condition)));
        }
      }
    }
    return std::move(trials_);
  }

 private:
  void say(std::string_view what) const {
    if (options_.progress) options_.progress(what);
  }

  /// One run as the user would make it; only the script's behaviour is kept.
  Result<void> look() {
    say("looking at what the script does");
    LEAT_TRY(const Trial trial,
             run_real(Relay::Mode::kWarm, kFirstReadsFurther, true));
    const RankRecord& first = trial.ranks.front();
    trials_.rows = first.rows.value_or(0);
    trials_.epoch_batches = first.epoch_batches.value_or(0);
    trials_.workers = first.workers;
    trials_.loads_ahead = first.loads_ahead;
    trials_.is_pipelined = first.is_pipelined;
    steps_ = whole_turns(options_.steps, first.workers);
    trials_.gradient_bytes = first.gradient_bytes;
    trials_.gradient_buckets = first.gradient_buckets;
    trials_.loader = first.loader;
    trials_.accelerator = first.accelerator;
    trials_.torch = first.torch;
    trials_.connects_to = trial.connects_to;
    if (!runs_here(options_.launch)) {
      trials_.why_no_warm =
          "the script runs behind --node or --nodes, and the profiler can make "
          "files and buckets warm or cold on its own machine alone: on one "
          "node, run leat profile there and without them";
      return {};
    }
    files_ = trial.opened_files;
    std::erase_if(files_, [](const auto& file) {
      return residency_of(std::span(&file, 1)).bytes == 0;
    });
    trials_.files = files_.size();
    reads_store_ = reads().passed_on + reads().from_memory > 0;
    if (reads_store_) LEAT_TRY_VOID(fill_relay());
    if (trials_.why_no_warm.empty()) decide_about_files();
    return {};
  }

  RelayCounts reads() const {
    return options_.relay == nullptr ? RelayCounts() : options_.relay->counts();
  }

  /// A run as the user would make it, that at its end reads `further` times as
  /// many batches as it measures.
  Result<Trial> run_real(Relay::Mode mode, std::uint32_t further = 1,
                         bool notes_files = false) const {
    if (options_.relay != nullptr) {
      options_.relay->set_mode(mode);
      options_.relay->reset_counts();
    }
    return run_trial(options_.place, options_.launch,
                     {.warmup = options_.warmup,
                      .steps = steps_,
                      .drained = further * steps_,
                      .notes_files = notes_files,
                      .reads_power = mode == Relay::Mode::kCold &&
                                     runs_here(options_.launch)},
                     stop_);
  }

  /// Runs until what the script reads has been read before.
  Result<void> fill_relay() {
    double missed = 1;
    for (int i = 0; i < kMostFillRuns && missed > kMostReadWarm; ++i) {
      say("reading what it reads into memory");
      LEAT_TRY_VOID(run_real(Relay::Mode::kWarm, kFillReadsFurther));
      const RelayCounts counts = reads();
      missed = static_cast<double>(counts.passed_on) /
               static_cast<double>(std::max<std::uint64_t>(
                   counts.passed_on + counts.from_memory, 1));
    }
    if (missed > kMostReadWarm) {
      trials_.why_no_warm = fmt::format(
          "{:.0f} % of what it reads from its bucket is new in each run, or "
          "does not fit into memory: give it a fixed seed, or less data",
          100 * missed);
    }
    return {};
  }

  void decide_about_files() {
    if (files_.empty()) {
      if (reads_store_) return;
      trials_.why_no_warm =
          "the script reads no file by Python or Leat and no bucket at "
          "AWS_ENDPOINT_URL, and what it reads otherwise cannot be kept in "
          "memory";
      return;
    }
    drop_from_page_cache(files_);
    const double left = share_resident(residency_of(files_));
    if (left > kMostLeftCold && reads_store_) {
      files_.clear();  // Only reads from the bucket count.
    } else if (left > kMostLeftCold) {
      trials_.why_no_warm = fmt::format(
          "{:.0f} % of the files stay in memory when they are dropped: they "
          "lie in a file system in memory, or somebody else uses them",
          100 * left);
    }
  }

  std::vector<Condition> conditions_to_run() const {
    std::vector<Condition> conditions = {Condition::kAlone};
    if (options_.launch.processes_per_node > 1) {
      conditions.push_back(Condition::kNode);
    }
    if (options_.launch.nodes.size() > 1) {
      conditions.push_back(Condition::kNodes);
    }
    if (trials_.why_no_warm.empty()) conditions.push_back(Condition::kWarm);
    conditions.push_back(Condition::kCold);
    return conditions;
  }

  Result<void> measure(Condition condition) {
    LaunchPlan launch = options_.launch;
    if (condition == Condition::kAlone) launch.processes_per_node = 1;
    if (condition < Condition::kNodes) launch.nodes.resize(1);
    if (condition == Condition::kWarm) return measure_warm();
    if (condition == Condition::kCold) return measure_cold();
    TrialOptions trial = {
        .warmup = options_.warmup,
        .steps = steps_,
        // None is fetched in a step that counts.
        .replayed = std::min(options_.replayed, options_.warmup + 1)};
    if (trials_.rows > 0) trial.rows = trials_.rows;
    LEAT_TRY(const Trial done,
             run_trial(options_.place, std::move(launch), trial, stop_));
    keep(condition, done);
    return {};
  }

  Result<void> measure_warm() {
    LEAT_TRY_VOID(read_into_page_cache(files_, stop_));
    std::optional<KeptPages> kept;
    kept.emplace(files_, effective_limits().memory_bytes / kKeptOfMemory);
    LEAT_TRY(const Trial done, run_real(Relay::Mode::kWarm));
    kept.reset();
    if (!files_.empty()) trials_.warm_files.push_back(residency_of(files_));
    keep(Condition::kWarm, done);
    return {};
  }

  Result<void> measure_cold() {
    if (trials_.why_no_warm.empty() && !files_.empty()) {
      drop_from_page_cache(files_);
      trials_.cold_files.push_back(residency_of(files_));
    }
    LEAT_TRY(const Trial done, run_real(Relay::Mode::kCold));
    keep(Condition::kCold, done);
    return {};
  }

  void keep(Condition condition, const Trial& trial) {
    ProfiledRun run{.condition = condition, .step_seconds = {}};
    run.step_seconds.reserve(trial.ranks.size());
    double supply = 0;
    bool is_supply_known = true;
    double slowest = 0;
    double cpu = 0;
    std::uint64_t batches = 0;
    const RankRecord* late = &trial.ranks.front();
    TimePoint from = late->measured_from;
    TimePoint until = late->measured_until;
    for (const RankRecord& rank : trial.ranks) {
      run.step_seconds.push_back(rank.step_seconds);
      supply = std::max(supply, seconds_a_batch(rank.supply_seconds));
      is_supply_known &= !rank.supply_seconds.empty();
      if (const double took = sum(rank.step_seconds); took > slowest) {
        slowest = took;
        late = &rank;
      }
      cpu = std::max(cpu, rank.supply_cpu_seconds.value_or(0));
      batches += rank.measured_batches;
      from = std::min(from, rank.measured_from);
      until = std::max(until, rank.measured_until);
    }
    trials_.runs.push_back(std::move(run));
    if (condition == Condition::kWarm) {
      if (is_supply_known) trials_.warm_supply_seconds.push_back(supply);
      if (cpu > 0) trials_.warm_supply_cpu_seconds.push_back(cpu);
      if (reads_store_) trials_.warm_reads.push_back(reads());
    } else if (condition == Condition::kCold) {
      if (is_supply_known) trials_.cold_supply_seconds.push_back(supply);
      if (reads_store_) trials_.cold_reads.push_back(reads());
      trials_.naive_wait_fractions.push_back(sum(late->wait_seconds) / slowest);
      trials_.cold_step_seconds = late->step_seconds;
      trials_.cold_wait_seconds = late->wait_seconds;
      trials_.cold_ranks.clear();
      for (const RankRecord& rank : trial.ranks) {
        trials_.cold_ranks.push_back({rank.step_seconds, rank.wait_seconds});
      }
      trials_.cold_batches = batches;
      if (reads_store_) {
        trials_.cold_batch_reads = options_.relay->counts_between(from, until);
      }
      const auto add = [](auto& all, const std::optional<double>& watts) {
        if (watts) all.push_back(*watts);
      };
      add(trials_.cold_processor_watts, trial.power.processors);
      add(trials_.cold_accelerator_watts, trial.power.accelerators);
    }
  }

  /// The second half alone: before it, batches come that were made ahead.
  static double seconds_a_batch(const std::vector<double>& seconds) {
    const std::size_t half = seconds.size() / 2;
    if (seconds.size() == half) return 0;
    return std::accumulate(seconds.begin() + static_cast<long>(half),
                           seconds.end(), 0.0) /
           static_cast<double>(seconds.size() - half);
  }

  const SessionOptions& options_;
  const std::stop_token& stop_;
  std::uint32_t steps_;
  std::vector<std::filesystem::path> files_;
  bool reads_store_ = false;
  TrainingTrials trials_;
};

}  // namespace

std::uint32_t whole_turns(std::uint32_t steps,
                          std::optional<std::uint64_t> workers) {
  if (workers.value_or(0) < 2 || *workers > steps) return steps;
  return steps - static_cast<std::uint32_t>(steps % *workers);
}

Result<TrainingTrials> run_session(const SessionOptions& options,
                                   const std::stop_token& stop) {
  return Session(options, stop).run();
}

}  // namespace leat
