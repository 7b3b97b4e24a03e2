// leat simulate JOBS.toml    What would each way of sharing nodes do for these
// jobs? The agent's own decisions, in virtual time.

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "leat/cli/commands.h"
#include "leat/cli/jobs_file.h"
#include "leat/cli/progress_line.h"
#include "leat/engine/read_text.h"

namespace leat {
namespace {

constexpr std::array kPolicies = {
    SharingPolicy::kEven,        SharingPolicy::kUnshared,
    SharingPolicy::kWorkersOnly, SharingPolicy::kSplit,
    SharingPolicy::kThroughput,  SharingPolicy::kFairness};

constexpr std::uint64_t kMostFileBytes = 1 << 20;

struct SimulateFlags {
  std::string file;
  bool is_json = false;
};

nlohmann::ordered_json json_of(const std::string& arrivals,
                               SharingPolicy policy,
                               const SharingReport& report,
                               const SharingReport& same, double took) {
  return {{"arrivals", arrivals},
          {"policy", to_string(policy)},
          {"jobs", report.jobs.size()},
          {"makespan_seconds", report.makespan_seconds},
          {"same_jobs",
           {{"mean_speed", same.mean_speed},
            {"least_at_once", same.least_at_once}}},
          {"mean_speed", report.mean_speed},
          {"least_speed", report.least_speed},
          {"fairness_index", report.fairness_index},
          {"starved_part", report.starved_part},
          {"changes_per_job_hour", report.changes_per_job_hour},
          {"job_seconds", report.job_seconds},
          {"job_seconds_per_second",
           took > 0 ? (report.job_seconds + same.job_seconds) / took : 0}};
}

void print(const std::string& arrivals, SharingPolicy policy,
           const SharingReport& report, const SharingReport& same,
           std::ostream& out) {
  out << fmt::format(
      "{:<10} {:<11} {:>7.3f} {:>7.3f} {:>8.2f} h {:>7.3f} {:>7.3f} {:>9.3f} "
      "{:>8.1f} % {:>9.1f}\n",
      arrivals, to_string(policy), same.mean_speed, same.least_at_once,
      report.makespan_seconds / 3600, report.mean_speed, report.least_speed,
      report.fairness_index, 100 * report.starved_part,
      report.changes_per_job_hour);
}

/// Every policy meets the same jobs at the same time: those of `report`.
void keep_times(const SharingReport& report, SharingSimulation& same_jobs) {
  for (std::size_t i = 0; i < same_jobs.jobs.size(); ++i) {
    SimulatedJob& job = same_jobs.jobs[i];
    job.leaves_seconds = report.jobs[i].finished_seconds;
    job.arrives_seconds += report.jobs[i].waited_seconds;
  }
}

/// Simulates, and says how far it is.
class Line {
 public:
  Line(CommandContext& context, const std::vector<NamedSharing>& runs)
      : line_(context) {
    for (const NamedSharing& run : runs) {
      for (const SharingPolicy policy : kPolicies) {
        all_ += 2 * work_of(policy) *
                static_cast<double>(run.simulation.jobs.size());
      }
    }
  }

  Result<SharingReport> simulate(const std::string& arrivals,
                                 const SharingSimulation& simulation,
                                 const std::stop_token& stop) {
    const double work = work_of(simulation.policy);
    const auto show = [&](std::size_t jobs) {
      line_.show({.what = "simulating",
                  .done = done_ + work * static_cast<double>(jobs),
                  .all = all_});
    };
    show(0);
    Result<SharingReport> report = simulate_sharing(simulation, stop, show);
    done_ += work * static_cast<double>(simulation.jobs.size());
    if (!report) return std::move(report).error().while_doing(arrivals);
    return report;
  }

  void clear() { line_.clear(); }

 private:
  /// Policies that learn from reports take a hundred times as long.
  static double work_of(SharingPolicy policy) {
    return policy == SharingPolicy::kThroughput ||
                   policy == SharingPolicy::kFairness
               ? 1
               : 0.01;
  }

  ProgressLine line_;
  double done_ = 0;
  double all_ = 0;
};

Result<void> run_simulate(const SimulateFlags& flags, CommandContext& context) {
  LEAT_TRY(const std::string text, read_text(flags.file, kMostFileBytes));
  LEAT_TRY(const std::vector<NamedSharing> runs,
           parse_jobs_file(text, flags.file));
  if (!flags.is_json) {
    context.out << fmt::format(
        "{:<10} {:<11} {:>7} {:>7} {:>10} {:>7} {:>7} {:>9} {:>10} {:>9}\n",
        "arrivals", "policy", "sum", "min", "makespan", "mean", "least",
        "fairness", "starved", "changes");
  }
  auto all = nlohmann::ordered_json::array();
  Line line(context, runs);
  for (const NamedSharing& run : runs) {
    SharingSimulation same_jobs = run.simulation;
    for (const SharingPolicy policy : kPolicies) {
      const auto begun = std::chrono::steady_clock::now();
      SharingSimulation simulation = run.simulation;
      simulation.policy = policy;
      LEAT_TRY(const SharingReport report,
               line.simulate(run.name, simulation, context.stop));
      if (policy == kPolicies.front()) keep_times(report, same_jobs);
      same_jobs.policy = policy;
      LEAT_TRY(const SharingReport same,
               line.simulate(run.name, same_jobs, context.stop));
      const std::chrono::duration<double> took =
          std::chrono::steady_clock::now() - begun;
      if (flags.is_json) {
        all.push_back(json_of(run.name, policy, report, same, took.count()));
      } else {
        line.clear();
        print(run.name, policy, report, same, context.out);
      }
    }
  }
  line.clear();
  if (flags.is_json) {
    context.out << nlohmann::ordered_json{{"runs", std::move(all)}}.dump()
                << '\n';
  }
  return {};
}

std::function<Result<void>(CommandContext&)> add_simulate(CLI::App& app) {
  auto flags = std::make_shared<SimulateFlags>();
  app.add_option("JOBS", flags->file, "the jobs and nodes, as TOML")
      ->required();
  app.add_flag("--json", flags->is_json, "print one JSON object");
  app.footer(
      "sum, min: speeds / speeds alone, and the least on a node, while every "
      "policy meets the\nsame jobs at the same time; mean: time alone / time "
      "beside others, over all jobs; least: of the "
      "job that lost most;\nfairness: Jain's index; starved: of the time, "
      "below 0.4 of what an even split gives;\nchanges: of a job's shares, "
      "an hour.\n\nExample:\n"
      "  leat simulate examples/jobs.toml");
  return [flags](CommandContext& context) {
    return run_simulate(*flags, context);
  };
}

}  // namespace

const Command kSimulateCommand{
    .name = "simulate",
    .summary = "predict the effect of sharing nodes among many jobs",
    .add = &add_simulate,
};

}  // namespace leat
