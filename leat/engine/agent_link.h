// A loader's line to the agent of its node.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "leat/agent/wire/messages.h"
#include "leat/base/env.h"
#include "leat/engine/loader_rates.h"
#include "leat/metrics/metrics.h"
#include "leat/tune/pace.h"
#include "leat/tune/share.h"

namespace leat {

struct AgentLinkOptions {
  std::vector<std::string> paths;  ///< agent_paths(); not empty.
  WireRegistration registration;
  std::function<LoaderRates()> rates;
  std::function<const Metrics&()> metrics;  ///< With prices of now.
  std::function<void(const Share&)> set_share;
  /// Hears the agent's pace for this job: see Loader::pace().
  std::function<void(const Pace&)> set_pace;
  /// The other nodes' pace, if known: goes with each report.
  std::function<std::optional<Pace>()> elsewhere;
  /// The latest steps; called about once a second while somebody looks.
  std::function<JobTrace()> trace;
};

/// Looks for an agent once a second, registers, then reports once a second and
/// carries out what shares come. Without an agent nothing changes; when one
/// dies the last share stays, and it is looked for again.
///
/// Threads:  one of its own, "leat-link", which calls all functions.
/// Lifetime: destruction hangs up and joins; the functions must live as long.
class AgentLink {
 public:
  virtual ~AgentLink() = default;
};
std::unique_ptr<AgentLink> open_agent_link(AgentLinkOptions options);

/// A key that is the same on all ranks of a job and on no other's of its time:
/// with torchrun and Slurm their job's id, else the place where its ranks meet
/// (MASTER_ADDR, MASTER_PORT and WORLD_SIZE), with the dataset; else this
/// loader alone.
std::string job_key(const Env& env, const std::string& dataset);

/// The name of a job for people: LEAT_JOB_NAME, else Slurm's name of it, else
/// the script or program that runs. Takes nothing else from the command line,
/// which may hold secrets. `command_line` is as /proc/self/cmdline has it.
std::string job_name(const Env& env, std::string_view command_line);

}  // namespace leat
