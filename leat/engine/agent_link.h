// A loader's line to the agent of its node.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "leat/agent/wire/messages.h"
#include "leat/base/env.h"
#include "leat/engine/loader_totals.h"
#include "leat/metrics/metrics.h"
#include "leat/tune/pace.h"
#include "leat/tune/share.h"

namespace leat {

struct AgentLinkOptions {
  std::vector<std::string> paths;  ///< agent_paths(); not empty.
  WireRegistration registration;
  std::function<LoaderTotals()> totals;
  std::function<const Metrics&()> metrics;  ///< Includes current prices.
  std::function<void(const Share&)> set_share;
  /// Receives the agent's pace for this job: see Loader::pace().
  std::function<void(const Pace&)> set_pace;
  /// The other nodes' pace, if known; sent with each report.
  std::function<std::optional<Pace>()> elsewhere;
  /// The latest steps; called about once a second while somebody watches.
  std::function<JobTrace()> trace;
};

/// Looks for an agent once a second, registers, then reports once a second and
/// applies the shares that come. Without an agent nothing changes. When an
/// agent dies, the last share stays in force and the search begins again.
///
/// Threads: one of its own, "leat-link", which calls all functions. Lifetime:
/// destruction hangs up and joins the thread; the functions must outlive it.
class AgentLink {
 public:
  virtual ~AgentLink() = default;
};
std::unique_ptr<AgentLink> open_agent_link(AgentLinkOptions options);

/// One of the loaders of a training.
struct JobLoader {
  std::string dataset;
  std::uint32_t world_size = 1;  ///< All processes of the training.
  /// The number of loaders with this dataset and place among the ranks that its
  /// process opened before.
  std::uint64_t ordinal = 0;
};

/// A key that all ranks of a job share and no other job of that time has. A
/// loader of several ranks has it from the id that torchrun or Slurm gave, and
/// from the place where its ranks meet (MASTER_ADDR, MASTER_PORT), or Slurm's
/// step if no place is said; and from all of `loader`, so that a loader for
/// training and one for evaluation are two jobs. With one rank, or with neither
/// id nor place, the key is for this loader alone.
///
/// REQUIRES: all ranks open their loaders with one dataset in the same order.
std::string job_key(const Env& env, const JobLoader& loader);

/// A readable name for a job: LEAT_JOB_NAME, or Slurm's name for it, or the
/// script or program that runs. Takes nothing else from the command line, which
/// may hold secrets. `command_line` is in the format of /proc/self/cmdline.
std::string job_name(const Env& env, std::string_view command_line);

}  // namespace leat
