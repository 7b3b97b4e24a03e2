#include "leat/profiler/launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "leat/base/errors.h"
#include "leat/profiler/shell_word.h"

namespace leat {
namespace {

bool is_python(std::string_view word) {
  word.remove_prefix(word.rfind('/') + 1);  // npos + 1 is 0.
  return word.starts_with("python") &&
         std::ranges::all_of(word.substr(6), [](char c) {
           return (c >= '0' && c <= '9') || c == '.' || c == 't';
         });
}

/// Python's own options, which come before the script, -m or -c.
std::size_t end_of_options(std::span<const std::string> words) {
  std::size_t i = 1;
  while (i < words.size() && words[i].starts_with('-') && words[i] != "-m" &&
         words[i] != "-c" && words[i] != "-") {
    // -X and -W take a value.
    i += words[i] == "-X" || words[i] == "-W" ? 2 : 1;
  }
  return std::min(i, words.size());
}

std::vector<std::string> torchrun_words(const LaunchPlan& plan,
                                        std::size_t node) {
  std::vector<std::string> words = {"-m", "torch.distributed.run",
                                    "--nproc-per-node",
                                    std::to_string(plan.processes_per_node)};
  if (plan.nodes.size() == 1) {
    words.emplace_back("--standalone");
    return words;
  }
  const std::vector<std::string> joint = {
      "--nnodes",      std::to_string(plan.nodes.size()),
      "--node-rank",   std::to_string(node),
      "--master-addr", plan.master_address,
      "--master-port", std::to_string(plan.master_port)};
  words.insert(words.end(), joint.begin(), joint.end());
  return words;
}

/// A line for a shell on another machine. If the connection ends before the
/// command does, its input ends, too, and then everything that the command
/// started in its session is ended. A shell that blocks signals while it starts
/// something passes none on to it. A process that missed SIGTERM is killed once
/// the command has ended, or has not in time.
std::string remote_line(std::span<const std::string> words,
                        const LaunchPlan& plan) {
  std::string script = "exec 3<&0 </dev/null; ";
  if (!plan.folder.empty()) {
    script += fmt::format("cd {} || exit; ", shell_word(plan.folder));
  }
  if (!plan.path.empty()) {
    script += fmt::format("PATH={}; export PATH; ", shell_word(plan.path));
  }
  // $$ is the command's number: the shell becomes it.
  script += fmt::format(
      "{{ trap '' TERM; read -r gone <&3; kill -TERM 0; sleep 1; left={}; "
      "while [ $left -gt 1 ] && kill -0 $$; "
      "do sleep 1; left=$((left - 1)); done; kill -KILL 0; }} "
      ">/dev/null 2>&1 & ",
      plan.grace.count());
  script += "exec " + shell_line(words) + " 3<&-";
  // By a shell that we know, since the user's may be any.
  return "exec sh -c " + shell_word(script);
}

std::vector<std::string> behind(std::vector<std::string> prefix,
                                std::vector<std::string> words,
                                const LaunchPlan& plan) {
  if (goes_through_shell(prefix)) {
    prefix.push_back(remote_line(words, plan));
  } else {
    std::ranges::move(words, std::back_inserter(prefix));
  }
  return prefix;
}

}  // namespace

bool runs_here(const LaunchPlan& plan) {
  return plan.nodes.size() == 1 && plan.nodes.front().empty();
}

bool goes_through_shell(std::span<const std::string> prefix) {
  return !prefix.empty() &&
         prefix.front().substr(prefix.front().rfind('/') + 1) == "ssh";
}

Result<std::vector<std::vector<std::string>>> launch_commands(
    std::span<const std::string> command, const LaunchPlan& plan) {
  if (command.empty()) {
    return invalid("no command to profile: leat profile -- python train.py");
  }
  if (plan.uses_torchrun && !is_python(command.front())) {
    return invalid(
        "\"{}\" is not python: several processes are started by torchrun, so "
        "give the command for one of them: leat profile --nproc-per-node 4 -- "
        "python train.py",
        command.front());
  }
  const std::size_t own = plan.uses_torchrun ? end_of_options(command) : 0;
  if (plan.uses_torchrun && (own == command.size() || command[own] == "-c")) {
    return invalid("torchrun starts a script or -m module: give one of them");
  }
  std::vector<std::vector<std::string>> commands;
  commands.reserve(plan.nodes.size());
  for (std::size_t node = 0; node < plan.nodes.size(); ++node) {
    std::vector<std::string> words = plan.wrapper;
    if (!plan.variables.empty() && !plan.nodes[node].empty()) {
      words.emplace_back("env");
      std::ranges::copy(plan.variables, std::back_inserter(words));
    }
    std::ranges::copy(command.first(own), std::back_inserter(words));
    if (plan.uses_torchrun) {
      std::ranges::copy(torchrun_words(plan, node), std::back_inserter(words));
    }
    std::ranges::copy(command.subspan(own), std::back_inserter(words));
    commands.push_back(behind(plan.nodes[node], std::move(words), plan));
  }
  return commands;
}

}  // namespace leat
