// From the command that a user would type to the commands of a run.
#pragma once
#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "leat/base/result.h"

namespace leat {

struct LaunchPlan {
  std::uint32_t processes_per_node = 1;
  /// Without it the command runs as it is; REQUIRES then one process.
  bool uses_torchrun = false;
  /// In front of the command on each node ("ssh host", "ip netns exec ns1"), as
  /// words; one empty prefix for this machine alone. ssh gives words to a
  /// shell, in the user's home: they are quoted so that it finds them as they
  /// are, in `folder`. Their processes end when ssh's standard input does: they
  /// get SIGTERM, and are killed `grace` later.
  std::vector<std::vector<std::string>> nodes = {{}};
  /// The address at which the other nodes reach the first, with more than one
  /// node.
  std::string master_address = "127.0.0.1";
  std::uint16_t master_port = 0;
  /// On each node in front of the rest, such as a scratch layer.
  std::vector<std::string> wrapper{};
  /// NAME=VALUE, for the script. Behind a prefix they stand among the words of
  /// the command; on this machine they do not, since every user can read those:
  /// whoever starts the command gives them to it.
  std::vector<std::string> variables{};
  std::string folder{};  ///< The working folder of the command.
  std::string path{};    ///< PATH, for nodes that are reached by ssh.
  /// Behind ssh, from SIGTERM to SIGKILL, for a command that does not end; at
  /// least a second. torchrun needs 30 for its processes.
  std::chrono::seconds grace{35};
};

/// The command for each node: `python [options] script …` becomes `… python
/// [options] -m torch.distributed.run --nproc-per-node N … script …`.
///
/// Errors:
///   kInvalidArgument  no command, or one that torchrun cannot run because it
///                     does not begin with python
Result<std::vector<std::vector<std::string>>> launch_commands(
    std::span<const std::string> command, const LaunchPlan& plan);

/// Whether all of it runs on this machine, so that an endpoint on our loopback,
/// our page cache and our power are those of the script. A prefix may lead
/// anywhere.
bool runs_here(const LaunchPlan& plan);

/// Whether the words behind this prefix go through a shell on another machine,
/// as they do behind ssh.
bool goes_through_shell(std::span<const std::string> prefix);

}  // namespace leat
