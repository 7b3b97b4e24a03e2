// Which process of how many this is, as its launcher says.
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
  /// The source of these numbers: "torchrun", "Open MPI", "Slurm", or "" if no
  /// launcher was found.
  std::string_view launcher;
};

/// Reads the variables that a launcher sets: torchrun's, else Open MPI's (its
/// processes may run in a step of Slurm's), else Slurm's. Slurm's count only if
/// srun started this process: a batch script also has a rank and the number of
/// the job's tasks, but it is one process alone. A process without such
/// variables is alone, too. If the launcher does not tell the number of
/// processes on the node, this process counts itself alone there.
///
/// Errors:
///   kInvalidArgument  a variable is not a number, one of a pair is missing, or
///                     a rank is not below its size; the message names it
Result<Launch> read_launch(const Env& env);

/// The count of node `node` in Slurm's "4(x2),3": two nodes of four, then one
/// of three. Nullopt if it is none, or has no such node.
std::optional<std::uint32_t> count_of_node(std::string_view counts,
                                           std::uint32_t node);

}  // namespace leat
