// Which process of how many this is, according to its launcher.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "leat/base/env.h"
#include "leat/base/ids.h"
#include "leat/base/result.h"

namespace leat {

/// The place of this process in its job.
struct Launch {
  Rank rank = {};
  /// Its place among the processes of its node, which share the node's budget.
  Rank local = {};
  /// False if nobody said how many processes the node has: then `local` says
  /// one.
  bool is_local_known = false;
  /// The source of these numbers: "torchrun", "Open MPI", "Slurm", or "" if no
  /// launcher was found.
  std::string_view launcher;
};

/// Reads the variables that a launcher sets: torchrun's, or Open MPI's (its
/// processes may run in a Slurm step), or Slurm's. Slurm's count only if srun
/// started this process: a batch script also has a rank and the job's number of
/// tasks, but is a single process. A process without such variables counts as
/// alone, too. If the launcher does not tell the number of processes on the
/// node, this process is taken to be alone there.
///
/// Errors:
///   kInvalidArgument  a variable is not a number, one of a pair is missing, or
///                     a rank is not below its size; the message names it
Result<Launch> read_launch(const Env& env);

/// The count for node `node` in Slurm's "4(x2),3": two nodes of four, then one
/// of three. Nullopt if the text is malformed or has no such node.
std::optional<std::uint32_t> count_of_node(std::string_view counts,
                                           std::uint32_t node);

}  // namespace leat
