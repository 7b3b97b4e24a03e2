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
  /// The source of these numbers: "torchrun", "Open MPI", "MVAPICH", "Horovod",
  /// "MPI", "Slurm", or "" if no launcher was found.
  std::string_view launcher;
};

/// Reads the variables that a launcher sets: torchrun's, or Open MPI's (its
/// processes may run in a Slurm step), or those of MVAPICH, Horovod, MPICH,
/// Intel's or Cray's MPI, or Slurm's. Slurm's count only if srun started this
/// process: a batch script also has a rank and the job's number of tasks, but
/// is a single process. A process without such variables counts as alone, too.
/// If the launcher does not tell the number of processes on the node, see
/// place_on_node().
///
/// Errors:
///   kInvalidArgument  a variable is not a number, one of a pair is missing, or
///                     a rank is not below its size; the message names it
Result<Launch> read_launch(const Env& env);

/// Sets `local` and `is_local_known` by `rank` and what else the environment
/// says: another launcher that gives this process the same rank and size;
/// LOCAL_RANK with the number of the job's nodes (GROUP_WORLD_SIZE, NNODES,
/// SLURM_NNODES); or a MASTER_ADDR on loopback, which has all ranks on this
/// node. All ranks find the same. If nothing is found, the process is taken to
/// be alone on its node.
void place_on_node(Launch& launch, const Env& env);

/// The count for node `node` in Slurm's "4(x2),3": two nodes of four, then one
/// of three. Nullopt if the text is malformed or has no such node.
std::optional<std::uint32_t> count_of_node(std::string_view counts,
                                           std::uint32_t node);

}  // namespace leat
