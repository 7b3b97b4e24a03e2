// An agent's view of its node, read by the page, `leat top` and /metrics.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "leat/agent/wire/job_counters.h"
#include "leat/tune/decision.h"
#include "leat/tune/share.h"

namespace leat {

/// The present state of one job.
struct JobView {
  std::string id;    ///< Unique on this node while the agent runs.
  std::string name;  ///< For display; never holds credentials.
  std::string dataset;
  std::uint32_t user = 0;      ///< uid
  std::string user_name = {};  ///< Empty: the machine knows no name.
  std::vector<std::int32_t> pids;
  std::uint32_t local_ranks = 1;
  std::uint32_t world_size = 1;
  double since_seconds = 0;  ///< Unix time of its registration.

  Share share = {};       ///< For all local ranks together.
  double found_rate = 0;  ///< Samples a second, over the last seconds.
  /// The rate that was predicted for that time; 0: unknown as yet.
  double predicted_rate = 0;
  double confidence = 0;                  ///< In [0, 1].
  std::optional<double> compute_ceiling;  ///< Samples a second.
  double wait_fraction = 0;               ///< In [0, 1].
  std::map<std::string, double> stalls;   ///< Cause: fraction of the time.
  std::string bottleneck;                 ///< to_string(Bound)
  /// The sum over local ranks; for counters, with those that have left.
  JobTotals totals = {};
};

/// A point of a job's history.
struct JobPoint {
  /// Unix time; later than that of the points before, even if the clock went
  /// back meanwhile. Points of several jobs may have one time.
  double time_seconds = 0;
  std::string job;
  double threads = 0;
  double in_flight = 0;
  double found_rate = 0;
  /// Predicted before the rate was found; 0: unknown.
  double predicted_rate = 0;
  double wait_fraction = 0;
  // Its share at that time, over all local ranks; nullopt: unlimited.
  std::optional<double> bytes_per_second = {};
  std::optional<double> ram_bytes = {};
  std::optional<double> disk_bytes = {};
};

/// A decision and the time at which it was made.
struct NumberedDecision {
  std::uint64_t number = 0;  ///< Counts up from 1.
  double time_seconds = 0;   ///< Unix time.
  Decision decision = {};
  std::string job_name = {};  ///< The job may have ended.
};

/// A link with a limit, through which jobs read.
struct LinkView {
  std::string bucket = {};      ///< Such as "s3://photos"; empty: all reads.
  double bytes_per_second = 0;  ///< The limit.
  double read_bytes_per_second = 0;  ///< By all jobs, over the last second.
};

struct NodeView {
  std::string name;
  double time_seconds = 0;  ///< Unix time.
  std::string objective;    ///< "throughput" or "fairness"
  double cores = 0;
  double cores_busy = 0;  ///< By everything on the node.
  /// By processes without Leat, and not started by a job.
  double cores_busy_outside = 0;
  std::uint64_t memory_bytes = 0;
  std::uint64_t in_flight = 0;  ///< Requests that all jobs together may have.
  std::vector<LinkView> links = {};
  /// Since the agent started, for all programs; none if it cannot be read.
  std::optional<double> processor_joules = {};
  std::optional<double> accelerator_joules = {};
  std::vector<JobView> jobs = {};
  std::vector<NumberedDecision> decisions = {};  ///< The latest last; bounded.
  std::vector<JobPoint> history = {};            ///< The latest last; bounded.
};

}  // namespace leat
