// The agent of a node: loaders come over a unix socket, say what they do and
// are told what they may use.
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
  /// Those that have a limit, as loaders name them ("s3://photos"): as many as
  /// node.bucket_bytes_per_second.
  std::vector<std::string> buckets;
  bool heeds_other_programs = true;
  SharingOptions sharing;
};

/// Holds no data. When the agent ends, loaders keep their last shares and look
/// for it again. A loader whose connection ends is gone, and its share is free
/// at once. The kernel tells who connects; users other than the agent's own,
/// root and its group are turned away. Both the number of connections and what
/// each can hold are bounded.
///
/// Threads:  view() and trace() from any; it has one of its own.
/// Lifetime: destruction hangs up, removes the socket and joins.
class Agent {
 public:
  static constexpr std::size_t kMostConnections = 1024;

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
