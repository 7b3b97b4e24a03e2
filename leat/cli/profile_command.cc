// leat profile -- CMD    Says where a training script waits, by running it
// under other conditions and subtracting
// (docs/design/0004-profile-by-difference.md).

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <ostream>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "leat/base/errors.h"
#include "leat/base/units.h"
#include "leat/cli/catalogue_flags.h"
#include "leat/cli/commands.h"
#include "leat/cli/ledger.h"
#include "leat/cli/number_checks.h"
#include "leat/cli/profile_page.h"
#include "leat/cli/profile_report.h"
#include "leat/engine/read_text.h"
#include "leat/profile/step_parts.h"
#include "leat/profiler/node_list.h"
#include "leat/profiler/relay.h"
#include "leat/profiler/run_folder.h"
#include "leat/profiler/scratch.h"
#include "leat/profiler/session.h"
#include "leat/profiler/trial.h"
#include "leat/runtime/limits.h"

namespace leat {
namespace {

using Path = std::filesystem::path;
using Json = nlohmann::ordered_json;

struct ProfileFlags {
  std::vector<std::string> command;
  std::optional<std::uint32_t> processes;
  std::vector<std::string> node_prefixes;
  std::string nodes;
  std::optional<std::string> master_address;
  std::uint32_t steps = 50;
  std::uint32_t warmup = 10;
  std::uint32_t repeats = 3;
  std::uint32_t replayed = 4;
  std::string limit = "10min";
  std::vector<std::string> outputs;
  std::string html;
  LedgerFlags ledger;
  bool no_scratch = false;
  bool bucket_writes = false;
  bool is_json = false;
};

// A larger number is taken for a typing error.
constexpr std::uint64_t kMostSteps = 1000000;
constexpr std::uint64_t kMostRepeats = 1000;
constexpr std::uint64_t kMostProcesses = 65536;

/// The folder of sitecustomize.py and the hook: beside the package that this
/// program belongs to, in a build tree or in a wheel.
Result<Path> hook_folder(const Env& env) {
  if (const auto given = value_of(env, "LEAT_PROFILE_HOOK")) {
    return Path(*given);
  }
  std::error_code failed;
  const Path program = std::filesystem::read_symlink("/proc/self/exe", failed);
  const Path bin = program.parent_path();
  for (const Path& folder : {bin.parent_path() / "_profile",
                             bin.parent_path() / "python/leat/_profile"}) {
    if (std::filesystem::exists(folder / "sitecustomize.py", failed)) {
      return folder;
    }
  }
  return not_found(
      "the hook for Python is not beside this program: install the package, or "
      "set LEAT_PROFILE_HOOK to its leat/_profile");
}

/// The folders that a script may write to: its working folder, the user's home,
/// and those that the user names.
Result<std::vector<Path>> scratch_folders(const ProfileFlags& flags,
                                          const Env& env) {
  std::vector<Path> folders = {std::filesystem::current_path()};
  std::error_code failed;
  if (const auto home = value_of(env, "HOME")) {
    const Path path = std::filesystem::weakly_canonical(*home, failed);
    if (!failed && path != "/" && std::filesystem::is_directory(path, failed)) {
      folders.push_back(path);
    }
  }
  for (const std::string& output : flags.outputs) {
    const Path path = std::filesystem::canonical(output, failed);
    if (failed || !std::filesystem::is_directory(path, failed)) {
      return invalid(
          "--outputs {}: no folder is there; make it, or leave it out", output);
    }
    folders.push_back(path);
  }
  return folders;
}

std::vector<std::string> words_in(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream stream(text);
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

/// The nodes that the flags name, and the address of the first, maybe empty.
Result<NodeCommands> nodes_of(const ProfileFlags& flags, const Env& env) {
  if (flags.nodes.empty()) {
    NodeCommands commands;
    for (const std::string& prefix : flags.node_prefixes) {
      commands.prefixes.push_back(words_in(prefix));
    }
    return commands;
  }
  if (flags.node_prefixes.empty()) return commands_on_nodes(flags.nodes, env);
  return invalid(
      "--nodes names all nodes, and --node one: give one of the two");
}

Result<LaunchPlan> launch_plan(const ProfileFlags& flags, const Env& env) {
  LEAT_TRY(const NodeCommands nodes, nodes_of(flags, env));
  LaunchPlan plan{
      .processes_per_node = flags.processes.value_or(1),
      .uses_torchrun = flags.processes.has_value() || !nodes.prefixes.empty(),
      .master_address = flags.master_address.value_or(nodes.first_address),
      // Any of the ports that nobody is told to use will do.
      .master_port =
          static_cast<std::uint16_t>(20000 + std::random_device()() % 10000),
      .folder = std::filesystem::current_path(),
      .path = value_of(env, "PATH").value_or("")};
  if (!nodes.prefixes.empty()) plan.nodes = nodes.prefixes;
  if (plan.processes_per_node == 0) {
    return invalid("--nproc-per-node 0");
  }
  if (plan.nodes.size() > 1 && plan.master_address.empty()) {
    return invalid(
        "--master-addr: the address at which the other nodes reach the first");
  }
  if (!runs_here(plan) && !flags.no_scratch && !flags.bucket_writes) {
    return invalid(
        "--node, --nodes: what the script writes to a bucket would reach the "
        "bucket, in each of the runs, since the endpoint that drops such "
        "writes "
        "is on this machine alone: pass --bucket-writes if that may be, or "
        "profile one node, on that node and without these flags");
  }
  return plan;
}

/// The bytes that the relay may keep: a quarter of the memory that this process
/// may use.
std::uint64_t relay_bytes() { return effective_limits().memory_bytes / 4; }

ProfileSettings settings_of(const ProfileFlags& flags,
                            const LaunchPlan& launch) {
  return {.command = flags.command,
          .nodes = launch.nodes.size(),
          .processes = launch.processes_per_node,
          .steps = flags.steps,
          .warmup = flags.warmup,
          .repeats = flags.repeats,
          .replayed = flags.replayed,
          .cores = effective_limits().cpus};
}

/// The energy of `seconds` at the mean of the powers that runs drew.
std::optional<double> joules_in(double seconds,
                                const std::vector<double>& watts) {
  if (watts.empty()) return std::nullopt;
  return seconds * std::accumulate(watts.begin(), watts.end(), 0.0) /
         static_cast<double>(watts.size());
}

/// The server of the script's data, as far as its environment tells.
std::string served_by(const Env& env) {
  for (const char* name : {"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"}) {
    if (const auto url = value_of(env, name)) return provider_at(*url);
  }
  return "";
}

/// The ledger of kSteps cold steps of all ranks, as they were measured.
Json ledger_of(const MeasuredStep& step, const Json& report,
               const TrainingTrials& trials, const Pricing& pricing) {
  constexpr double kSteps = 1000;
  const double seconds = kSteps * report["step_seconds"].get<double>();
  const double batches = kSteps * step.devices * step.nodes;
  const Json& asked = report["fetch_a_batch"];
  const auto count = [&](const char* name) {
    return asked.is_null() ? 0.0 : batches * asked[name].get<double>();
  };
  const LedgerCounts counts = {
      .usage = {.gets = count("gets"),
                .lists = count("lists"),
                .get_bytes = count("bytes")},
      .stalled_accelerator_seconds = batches * (step.preparation + step.fetch),
      .accelerators_a_node = step.devices,
      .processor_joules = joules_in(seconds, trials.cold_processor_watts),
      .accelerator_joules = joules_in(seconds, trials.cold_accelerator_watts)};
  Json ledger = {{"steps", kSteps}};
  ledger.update(Json::parse(to_json(counts, pricing)));
  return ledger;
}

Result<Json> profile(const ProfileFlags& flags, const LaunchPlan& launch,
                     Nanoseconds limit, CommandContext& context) {
  LEAT_TRY(const Path hook, hook_folder(context.env));
  LEAT_TRY(const RunFolder folder, RunFolder::make());
  SessionOptions session{
      .place = {.command = flags.command,
                .hook_folder = hook,
                .run_folder = folder.path(),
                .python_path = value_of(context.env, "PYTHONPATH").value_or(""),
                .limit = limit,
                .held = folder.held()},
      .launch = launch,
      .steps = flags.steps,
      .warmup = flags.warmup,
      .repeats = flags.repeats,
      .replayed = flags.replayed,
      .progress = [&](std::string_view what) {
        if (::isatty(STDERR_FILENO) != 0) context.err << what << '\n';
      }};
  if (!flags.no_scratch) {
    LEAT_TRY(session.place.scratch_folders,
             scratch_folders(flags, context.env));
    LEAT_TRY_VOID(check_scratch(session.place.scratch_folders, folder.path(),
                                context.stop));
  }
  std::unique_ptr<Relay> relay;
  if (runs_here(launch)) {  // Other nodes do not reach our loopback.
    LEAT_TRY(relay, open_relay(context.env, relay_bytes()));
    session.relay = relay.get();
    for (const char* name : {"AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"}) {
      session.launch.variables.push_back(
          fmt::format("{}={}", name, relay->url()));
    }
  }
  LEAT_TRY(const TrainingTrials trials, run_session(session, context.stop));
  LEAT_TRY(const StepParts split, split_step(trials.runs));
  Json report = profile_json(settings_of(flags, launch), trials, split);
  LEAT_TRY(const MeasuredStep measured, measured_step(report));
  LEAT_TRY(const StepModel model, StepModel::of(measured));
  report["what_if"] = what_if_json(model);
  LEAT_TRY(const Pricing pricing, flags.ledger.pricing(served_by(context.env)));
  report["ledger"] = ledger_of(measured, report, trials, pricing);
  return report;
}

Result<void> run_profile(const ProfileFlags& flags, CommandContext& context) {
  LEAT_TRY_VOID(flags.ledger.pricing());
  LEAT_TRY(const LaunchPlan launch, launch_plan(flags, context.env));
  LEAT_TRY(const Nanoseconds limit, parse_duration(flags.limit));
  // Fail now, not after minutes of work.
  if (!flags.html.empty() && !std::ofstream(flags.html, std::ios::app)) {
    return invalid(
        "--html {}: cannot be written: make its folder, or give a path that "
        "you may write",
        flags.html);
  }
  Result<Json> report = profile(flags, launch, limit, context);
  Result<void> page;
  if (!flags.html.empty()) {
    page = write_text(
        flags.html,
        profile_page(report ? *report
                            : failed_profile_json(settings_of(flags, launch),
                                                  report.error().message())));
  }
  if (!report) return std::move(report).error();
  if (flags.is_json) {
    context.out << dump_json(*report) << '\n';
  } else {
    print_profile(*report, context.out);
    context.out << '\n';
    print_what_if((*report)["what_if"], context.out);
  }
  return page;  // The minutes of work are told even where this is an error.
}

std::function<Result<void>(CommandContext&)> add_profile(CLI::App& app) {
  auto flags = std::make_shared<ProfileFlags>();
  app.add_option("COMMAND", flags->command, "the training: python train.py …")
      ->required();
  app.add_option("--nproc-per-node", flags->processes,
                 "processes on each node, started by torchrun")
      ->transform(count_between(1, kMostProcesses));
  app.add_option("--nodes", flags->nodes,
                 "\"slurm\": those of the allocation, by srun; or hosts, by "
                 "ssh: node[01-03,07],gpu5");
  app.add_option("--node", flags->node_prefixes,
                 "a prefix of the command that runs it on a node, once for "
                 "each: \"ssh host\"")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--master-addr", flags->master_address,
                 "the address of the first node for the others, if that is not "
                 "its name in --nodes");
  app.add_option("--steps", flags->steps, "steps that are measured in each run")
      ->transform(count_between(2, kMostSteps))
      ->capture_default_str();
  app.add_option("--warmup", flags->warmup, "steps left out before them")
      ->transform(count_between(0, kMostSteps))
      ->capture_default_str();
  app.add_option("--repeats", flags->repeats, "runs under each condition")
      ->transform(count_between(1, kMostRepeats))
      ->capture_default_str();
  app.add_option("--replayed", flags->replayed,
                 "batches that are given again and again; at most "
                 "--warmup and one")
      ->transform(count_between(1, kMostSteps))
      ->capture_default_str();
  app.add_option("--limit", flags->limit, "most time for one run")
      ->check(duration_in_units())
      ->capture_default_str();
  app.add_option("--outputs", flags->outputs,
                 "a folder that the script writes to, outside of its working "
                 "directory and your home; may be repeated")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_flag("--no-scratch", flags->no_scratch,
               "let the script write its checkpoints and logs for real");
  app.add_flag(
      "--bucket-writes", flags->bucket_writes,
      "with --node or --nodes: let the script write to its buckets for "
      "real");
  flags->ledger.add_to(app);
  flags->ledger.add_energy_to(app);
  app.add_option("--html", flags->html,
                 "also write a page to look at, of a failure too");
  app.add_flag("--json", flags->is_json, "print one JSON object");
  app.footer(
      "Example:\n  leat profile --nproc-per-node 4 -- python train.py "
      "--epochs 1");
  return
      [flags](CommandContext& context) { return run_profile(*flags, context); };
}

}  // namespace

const Command kProfileCommand{
    .name = "profile",
    .summary = "find out where a training script waits, without changing it",
    .add = &add_profile,
};

}  // namespace leat
