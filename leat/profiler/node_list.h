// Which machines a training runs on, as their names are written.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "leat/base/env.h"
#include "leat/base/result.h"

namespace leat {

/// The names in a list, as Slurm compresses them: "node[01-03,07],gpu5" is
/// node01, node02, node03, node07 and gpu5, in this order.
///
/// Errors:
///   kInvalidArgument  it is no such list, names nobody or over 10,000, or one
///                     that could be taken for an option; says where
Result<std::vector<std::string>> parse_node_list(std::string_view list);

/// Nodes, and what starts a command on each: words to put in front of it.
struct NodeCommands {
  std::vector<std::vector<std::string>> prefixes;
  std::string first_address;  ///< The address of the first node for the others.
};

/// `nodes` is "slurm", for those of the allocation that we are in, by srun(1),
/// each with all of its cores; or a list of hosts, by ssh(1), each "HOST" or
/// "USER@HOST".
///
/// Errors:
///   kInvalidArgument  as parse_node_list; or there is no allocation
Result<NodeCommands> commands_on_nodes(std::string_view nodes, const Env& env);

}  // namespace leat
