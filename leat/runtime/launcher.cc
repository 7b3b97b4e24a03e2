#include "leat/runtime/launcher.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <utility>

#include "leat/base/text.h"

namespace leat {
namespace {

/// The names that one launcher gives to the same four numbers.
struct Variables {
  std::string_view launcher;
  std::string_view rank;
  std::string_view world_size;
  std::string_view local_rank;
  std::string_view local_world_size;
  // More precise answers to the last question, if the launcher has them: the
  // number of processes on each node, and the number of this node.
  std::string_view each_nodes = {};
  std::string_view node = {};
  // The step that the launcher started this process in, if it also sets its
  // variables for processes that it did not start.
  std::string_view step = {};
  // Other programs may set one of rank and world size alone: they count only
  // together.
  bool needs_both = false;
};

/// From here on Slurm numbers steps that srun did not start: a batch script,
/// the shell of salloc, processes that a job leaves behind.
constexpr std::uint32_t kFirstReservedStep = 0xffff'fff0;

constexpr std::array kLaunchers = {
    Variables{"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK",
              "LOCAL_WORLD_SIZE"},
    Variables{"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
              "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
    Variables{.launcher = "MVAPICH",
              .rank = "MV2_COMM_WORLD_RANK",
              .world_size = "MV2_COMM_WORLD_SIZE",
              .local_rank = "MV2_COMM_WORLD_LOCAL_RANK",
              .local_world_size = "MV2_COMM_WORLD_LOCAL_SIZE",
              .needs_both = true},
    Variables{.launcher = "Horovod",
              .rank = "HOROVOD_RANK",
              .world_size = "HOROVOD_SIZE",
              .local_rank = "HOROVOD_LOCAL_RANK",
              .local_world_size = "HOROVOD_LOCAL_SIZE",
              .needs_both = true},
    // MPICH and Intel MPI, and then Cray's, which count the node's processes by
    // other words.
    Variables{.launcher = "MPI",
              .rank = "PMI_RANK",
              .world_size = "PMI_SIZE",
              .local_rank = "MPI_LOCALRANKID",
              .local_world_size = "MPI_LOCALNRANKS",
              .needs_both = true},
    Variables{.launcher = "MPI",
              .rank = "PMI_RANK",
              .world_size = "PMI_SIZE",
              .local_rank = "PMI_LOCAL_RANK",
              .local_world_size = "PMI_LOCAL_SIZE",
              .needs_both = true},
    Variables{"Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID",
              "SLURM_NTASKS_PER_NODE", "SLURM_STEP_TASKS_PER_NODE",
              "SLURM_NODEID", "SLURM_STEP_ID"},
};

constexpr std::string_view kRemedy =
    "; set it right, or say rank= and world_size= yourself";

Error bad_launch(std::string what) {
  return Error(ErrorCode::kInvalidArgument, std::move(what.append(kRemedy)));
}

Result<std::optional<std::uint32_t>> read_number(const Env& env,
                                                 std::string_view name) {
  const std::optional<std::string> text = env(name);
  if (!text.has_value()) return std::optional<std::uint32_t>();
  const auto value = number_from<std::uint32_t>(*text);
  if (!value) {
    return bad_launch(
        fmt::format("{} is \"{}\", which is not a whole number of at least 0",
                    name, *text));
  }
  return value;
}

/// Cuts a whole number from the front of `text`.
std::optional<std::uint32_t> take_number(std::string_view& text) {
  std::uint32_t value = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

Result<std::optional<std::uint32_t>> read_local_size(const Variables& variables,
                                                     const Env& env) {
  if (!variables.each_nodes.empty()) {
    const std::optional<std::string> counts = env(variables.each_nodes);
    LEAT_TRY(const auto node, read_number(env, variables.node));
    if (counts && node) {
      const auto count = count_of_node(*counts, *node);
      if (count) return count;
      return bad_launch(fmt::format(
          "{} is \"{}\", which has no count for the node that {}={} names",
          variables.each_nodes, *counts, variables.node, *node));
    }
  }
  return read_number(env, variables.local_world_size);
}

/// A batch script and the shell of salloc have a rank and the job's tasks too,
/// but srun did not start them: they are no step of its. The others' variables
/// come together or are mistaken.
Result<bool> is_launched(const Variables& variables, const Env& env) {
  const bool has_rank = env(variables.rank).has_value();
  const bool has_size = env(variables.world_size).has_value();
  if (variables.needs_both) return has_rank && has_size;
  if (variables.step.empty()) return has_rank || has_size;
  if (!has_rank) return false;
  LEAT_TRY(const auto step, read_number(env, variables.step));
  return step.has_value() && *step < kFirstReservedStep;
}

/// The number that a variable has; nullopt also if it is not a number.
std::optional<std::uint32_t> number_in(const Env& env, std::string_view name) {
  const auto number = read_number(env, name);
  return number ? *number : std::nullopt;
}

/// A launcher's word on the node of `rank`, if its ranks are these.
std::optional<Rank> local_of(const Variables& variables, Rank rank,
                             const Env& env) {
  const auto is_launcher = is_launched(variables, env);
  if (!is_launcher || !*is_launcher ||
      number_in(env, variables.rank) != rank.rank ||
      number_in(env, variables.world_size) != rank.world_size) {
    return std::nullopt;
  }
  const auto size = read_local_size(variables, env);
  if (!size || !*size) return std::nullopt;
  const Rank local{number_in(env, variables.local_rank).value_or(0),
                   std::min(**size, rank.world_size)};
  return local.rank < local.world_size ? std::optional(local) : std::nullopt;
}

/// LOCAL_RANK in a job that says how many nodes it has, each with as many
/// ranks, and these one after another.
std::optional<Rank> local_by_nodes(Rank rank, const Env& env) {
  const auto local_rank = number_in(env, "LOCAL_RANK");
  if (!local_rank) return std::nullopt;
  for (const std::string_view name :
       {"GROUP_WORLD_SIZE", "NNODES", "SLURM_NNODES"}) {
    const std::uint32_t nodes = number_in(env, name).value_or(0);
    if (nodes == 0 || rank.world_size % nodes != 0) continue;
    const std::uint32_t size = rank.world_size / nodes;
    if (rank.rank % size == *local_rank) return Rank{*local_rank, size};
  }
  return std::nullopt;
}

/// All ranks meet at an address that no other node reaches.
bool are_all_here(const Env& env) {
  const std::string address = value_of(env, "MASTER_ADDR").value_or("");
  return address == "localhost" || address == "::1" ||
         address.starts_with("127.");
}

}  // namespace

void place_on_node(Launch& launch, const Env& env) {
  launch.local = {0, 1};
  if (launch.rank.world_size < 2) return;
  std::optional<Rank> local;
  for (const Variables& variables : kLaunchers) {
    if (!local) local = local_of(variables, launch.rank, env);
  }
  if (!local) local = local_by_nodes(launch.rank, env);
  if (!local && are_all_here(env)) local = launch.rank;
  launch.is_local_known = local.has_value();
  if (local) launch.local = *local;
}

namespace {

Result<Launch> read_from(const Variables& variables, const Env& env) {
  LEAT_TRY(const auto rank, read_number(env, variables.rank));
  LEAT_TRY(const auto world_size, read_number(env, variables.world_size));
  LEAT_TRY(const auto local_rank, read_number(env, variables.local_rank));
  LEAT_TRY(const auto local_size, read_local_size(variables, env));
  if (!rank.has_value() || !world_size.has_value()) {
    return bad_launch(
        fmt::format("{} is set but {} is not",
                    rank.has_value() ? variables.rank : variables.world_size,
                    rank.has_value() ? variables.world_size : variables.rank));
  }
  if (*rank >= *world_size) {
    return bad_launch(fmt::format("{}={} is not below {}={}", variables.rank,
                                  *rank, variables.world_size, *world_size));
  }
  // Slurm's count is that of the job's request, which a smaller step inherits.
  const std::uint32_t local_world =
      std::min(local_size.value_or(1), *world_size);
  if (local_size.has_value() && local_rank.value_or(0) >= local_world) {
    return bad_launch(
        fmt::format("{}={} is not below the {} processes of its node",
                    variables.local_rank, local_rank.value_or(0), *local_size));
  }
  Launch launch{.rank = {*rank, *world_size},
                .local = {local_rank.value_or(0), local_world},
                .is_local_known = local_size.has_value(),
                .launcher = variables.launcher};
  if (!local_size.has_value()) place_on_node(launch, env);
  return launch;
}

}  // namespace

std::optional<std::uint32_t> count_of_node(std::string_view counts,
                                           std::uint32_t node) {
  std::uint64_t nodes = 0;
  while (true) {
    const auto count = take_number(counts);
    if (!count) return std::nullopt;
    std::optional<std::uint32_t> times = 1;
    if (counts.starts_with("(x")) {
      counts.remove_prefix(2);
      times = take_number(counts);
      if (!times || !counts.starts_with(')')) return std::nullopt;
      counts.remove_prefix(1);
    }
    nodes += *times;
    if (node < nodes) return count;
    if (!counts.starts_with(',')) return std::nullopt;
    counts.remove_prefix(1);
  }
}

Result<Launch> read_launch(const Env& env) {
  for (const Variables& variables : kLaunchers) {
    LEAT_TRY(const bool launched, is_launched(variables, env));
    if (launched) return read_from(variables, env);
  }
  return Launch{};
}

}  // namespace leat
