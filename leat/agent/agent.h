// The agent of a node: loaders connect over a unix socket, report what they do
// and are told what they may use.
#pragma once
#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "leat/agent/node_view.h"
#include "leat/agent/wire/job_trace.h"
#include "leat/base/result.h"
#include "leat/tune/node_sharing.h"

namespace leat {

struct AgentOptions {
  std::string socket;          ///< A path; see listen_at().
  std::optional<gid_t> group;  ///< Its members may connect, too.
  /// The resources that jobs share; threads at most what with_cores() says.
  NodeResources node;
  /// The buckets that have a limit, as loaders name them ("s3://photos"): as
  /// many as node.bucket_bytes_per_second.
  std::vector<std::string> buckets;
  bool heeds_other_programs = true;
  SharingOptions sharing;
};

/// Holds no data. When the agent ends, loaders keep their last shares and look
/// for an agent again. When a connection ends, its loader is gone and the share
/// is free immediately. The kernel tells who connects; users other than the
/// agent's own, root and members of its group are rejected. The number of
/// connections, in all and of each user, and what each can hold are bounded;
/// one that does not register soon is closed.
///
/// Threads: view() and trace() from any; the agent has a thread of its own.
/// Lifetime: destruction hangs up, removes the socket and joins.
class Agent {
 public:
  /// Fewer if the process may open few files: then half of those.
  static constexpr std::size_t kMostConnections = 1024;
  static constexpr std::size_t kMostOfAUser = 256;

  virtual ~Agent() = default;
  virtual NodeView view() const = 0;

  /// The last steps of the first rank of a job, as it told last; a trace of no
  /// steps until then. Asking makes the rank tell about once a second, for some
  /// seconds. Returns at once. nullopt: no such job, by its id in view().
  virtual std::optional<JobTrace> trace(const std::string& job) = 0;
};

/// Errors: those of listen_at()
Result<std::unique_ptr<Agent>> open_agent(const AgentOptions& options);

}  // namespace leat
