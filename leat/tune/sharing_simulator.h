// Many jobs on many nodes over virtual time, under each way of sharing.
#pragma once
#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "leat/base/result.h"
#include "leat/tune/node_sharing.h"

namespace leat {

enum class SharingPolicy : std::uint8_t {
  kEven,         ///< Equal parts of everything, by how many jobs are there.
  kUnshared,     ///< No shares: each resource is divided by demand, as an ideal
                 ///< kernel and network would; the cache in equal parts.
  kWorkersOnly,  ///< Threads alone, to where they gain most, all else in equal
                 ///< parts: our reading of A-Dloader, told the truth.
  /// No policy, but a yardstick for the cost of whole threads: the best sum,
  /// told the truth, with threads that can be split as cores can.
  kSplit,
  kThroughput,  ///< NodeSharing, from noisy reports.
  kFairness,
};
/// "even", "unshared", "workers", "split", "throughput", "fairness".
std::string_view to_string(SharingPolicy policy);

struct SimulatedJob {
  std::string name;
  double arrives_seconds = 0;
  double samples = 0;  ///< To do, on each of its nodes.
  double dataset_samples = 0;
  /// When it goes, done or not; 0: when it is done.
  double leaves_seconds = 0;
  std::uint32_t nodes =
      1;                  ///< Its ranks' nodes: all go at the slowest's speed.
  double kept_bytes = 0;  ///< JobReport has it.
  std::vector<std::size_t> buckets;  ///< Claim::buckets
  JobSpeed truth;                    ///< On each of its nodes.
};

struct SharingSimulation {
  NodeResources node;  ///< Each of them.
  std::uint32_t nodes = 1;
  std::uint32_t jobs_per_node = 8;  ///< More wait, first come, first served.
  std::vector<SimulatedJob> jobs;
  SharingPolicy policy = SharingPolicy::kEven;
  SharingOptions sharing;     ///< Its objective is the policy's.
  double noise = 0.03;        ///< The noise of reports, relative.
  double tick_seconds = 1;    ///< Between reports.
  double most_seconds = 3e6;  ///< In virtual time.
  std::uint64_t seed = 0;
};

struct SimulatedOutcome {
  double waited_seconds = 0;  ///< For a place on its nodes.
  double run_seconds = 0;
  double speed = 0;  ///< Time alone on its nodes / time it ran, in [0, 1].
  /// Below 0.4 of the rate that an even split of its nodes would have given.
  double starved_seconds = 0;
  std::uint64_t changes = 0;  ///< Changes of its shares, after the first.
  /// Median of |found / predicted - 1|. The found values come from the formula
  /// that predicts. So it shows that reports are enough to learn the formula,
  /// and nothing about real jobs.
  double prediction_error = 0;
  double finished_seconds = 0;
};

struct SharingReport {
  std::vector<SimulatedOutcome> jobs;
  double makespan_seconds = 0;  ///< From the first arrival to the last end.
  /// Simulated seconds of parts of jobs on nodes.
  double job_seconds = 0;
  /// Work done, in the time that it would take alone, / time that jobs ran. If
  /// all jobs leave at given times, kThroughput should maximise it.
  double mean_speed = 0;
  double least_speed = 0;  ///< The speed of the job that lost most.
  /// The least rate / rate alone on a node, over nodes and time. If all jobs
  /// leave at given times, kFairness should maximise it.
  double least_at_once = 0;
  double fairness_index = 0;  ///< Jain's index of speeds: 1 when all are equal.
  double starved_part = 0;    ///< A share of the time that jobs ran.
  double changes_per_job_hour = 0;
  double prediction_error = 0;  ///< Median over jobs.
};

/// The report of a job with this speed for `seconds` at `rate`, which is at
/// most what `grant` lets it do; `missed` of its reads go to the store.
JobReport report_of(const JobSpeed& truth, const Grant& grant, double rate,
                    double seconds);

/// Runs until every job is done. Deterministic. `ended`, if given, is told on
/// the caller's thread how many jobs have ended, each time that one does.
///
/// Errors:
///   kInvalidArgument  no nodes, a job that wants more nodes than there are,
///                     or that is not done within `most_seconds`
///   kCancelled        `stop` fired
Result<SharingReport> simulate_sharing(
    const SharingSimulation& simulation, const std::stop_token& stop = {},
    const std::function<void(std::size_t jobs)>& ended = {});

}  // namespace leat
