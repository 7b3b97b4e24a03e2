#include "leat/profiler/trial.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "leat/base/errors.h"
#include "leat/base/system_error.h"
#include "leat/profiler/child.h"
#include "leat/profiler/scratch.h"

namespace leat {
namespace {

using Path = std::filesystem::path;

constexpr std::uint64_t kMostRecordBytes = 64 << 20;
constexpr std::size_t kShownLines = 40;
/// The part of a log that is searched for the reason of a script's failure.
constexpr std::int64_t kMostOfLog = 1 << 20;
/// Sockets are bound in a temporary folder, and their names have 107 bytes at
/// most: torch's workers take 32 of them, and hang where that is too long.
constexpr std::size_t kMostOfTemporaryFolder = 107 - 40;

Result<std::string> read_file(const Path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text;
  if (!file || !(file.seekg(0, std::ios::end)) ||
      static_cast<std::uint64_t>(file.tellg()) > kMostRecordBytes) {
    return not_found(path.filename().string());
  }
  text.resize(static_cast<std::size_t>(file.tellg()));
  file.seekg(0).read(text.data(), static_cast<std::streamsize>(text.size()));
  return text;
}

/// The last of a file that may be of any size.
Result<std::string> read_end_of(const Path& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const auto size = static_cast<std::int64_t>(file.tellg());
  if (!file || size < 0) {
    return not_found(path.filename().string());
  }
  std::string text(static_cast<std::size_t>(std::min(size, kMostOfLog)), '\0');
  file.seekg(size - static_cast<std::int64_t>(text.size()));
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

/// From where an exception tells its story; else the last lines. torchrun
/// says much after it that nobody asked for.
std::string telling_lines(const Path& log) {
  const Result<std::string> text = read_end_of(log);
  if (!text) return "";
  if (const auto story = text->find("Traceback (most recent call last)");
      story != std::string::npos) {
    std::size_t end = story;
    for (std::size_t lines = 0; lines < kShownLines && end < text->size();
         ++lines) {
      end = std::min(text->find('\n', end), text->size() - 1) + 1;
    }
    return text->substr(story, end - story);
  }
  if (text->empty()) return "";
  std::size_t begin = text->size();
  for (std::size_t lines = 0; begin > 0 && lines <= kShownLines; ++lines) {
    begin = text->rfind('\n', begin - 1);
    if (begin == std::string::npos) return *text;
  }
  return text->substr(begin + 1);
}

/// The output of a node's command.
Path log_of(const TrialPlace& place, std::size_t node) {
  return place.run_folder / fmt::format("node{}.log", node);
}

std::string script_failed(const TrialPlace& place, const LaunchPlan& launch,
                          const Child::End& end) {
  std::string where;
  if (!runs_here(launch)) {
    where = fmt::format(" on node {} ({})", end.child,
                        fmt::join(launch.nodes[end.child], " "));
  }
  std::string told =
      fmt::format("the script failed{} with status {}:\n{}", where, end.status,
                  telling_lines(log_of(place, end.child)));
  for (const char* lacking :
       {"environment variable RANK expected", "KeyError: 'RANK'",
        "KeyError: 'LOCAL_RANK'", "KeyError: 'WORLD_SIZE'"}) {
    if (told.find(lacking) == std::string::npos) continue;
    return told +
           "It takes its rank from torchrun: give --nproc-per-node 1, "
           "or as many as it is to have on a node.";
  }
  return told;
}

/// The folder for the script's temporary files. Kept from run to run, since
/// compiled kernels may be among them, and removed with the run folder.
Path temporary_folder(const TrialPlace& place) {
  return place.run_folder / "tmp";
}

Result<void> empty_run_folder(const TrialPlace& place) {
  std::error_code failed;
  for (const auto& entry :
       std::filesystem::directory_iterator(place.run_folder, failed)) {
    if (entry.path() == temporary_folder(place)) continue;
    std::filesystem::remove_all(entry.path(), failed);
  }
  if (!failed) {
    std::filesystem::create_directory(temporary_folder(place), failed);
  }
  if (!failed) return {};
  return system_error(failed.value(), "emptying " + place.run_folder.string());
}

Result<void> write_spec(const TrialPlace& place, std::size_t ranks,
                        const TrialOptions& options) {
  // It lies in the run folder, whose name may not be UTF-8, as JSON must be.
  nlohmann::json spec = {{"warmup", options.warmup},
                         {"steps", options.steps},
                         {"replayed", options.replayed},
                         {"drained", options.drained},
                         {"rows", nullptr},
                         {"ranks", ranks},
                         {"notes_files", options.notes_files}};
  if (options.rows) spec["rows"] = *options.rows;
  std::ofstream file(place.run_folder / "spec.json");
  file << spec.dump();
  if (file.flush()) return {};
  return unavailable("writing into " + place.run_folder.string());
}

std::vector<std::string> variables_for(const TrialPlace& place) {
  std::string path = place.hook_folder.string();
  if (!place.python_path.empty()) path += ":" + place.python_path;
  std::vector<std::string> variables = {
      "PYTHONPATH=" + path,
      "LEAT_PROFILE=" + (place.run_folder / "spec.json").string()};
  const std::string temporary = temporary_folder(place).string();
  if (temporary.size() <= kMostOfTemporaryFolder) {
    variables.push_back("TMPDIR=" + temporary);
  }
  return variables;
}

Result<void> run_commands(const TrialPlace& place, const LaunchPlan& launch,
                          const std::stop_token& stop) {
  LEAT_TRY(const auto commands, launch_commands(place.command, launch));
  std::vector<Child> children;
  children.reserve(commands.size());
  for (std::size_t node = 0; node < commands.size(); ++node) {
    auto child = Child::start(
        commands[node], log_of(place, node),
        goes_through_shell(launch.nodes[node]) ? ChildInput::kOpen
                                               : ChildInput::kEmpty,
        place.held,
        launch.nodes[node].empty()
            ? std::span<const std::string>(launch.variables)
            : std::span<const std::string>());
    if (!child) {
      Child::end_all(children);
      return std::move(child).error();
    }
    children.push_back(*std::move(child));
  }
  LEAT_TRY(const Child::End end,
           Child::wait_for_failure(children, place.limit, stop));
  if (const Result<std::string> why = read_file(place.run_folder / "refused")) {
    return invalid(*why);
  }
  if (end.status == 0) return {};
  return unavailable(script_failed(place, launch, end));
}

Result<RankRecord> read_record(const Path& folder, std::size_t rank,
                               const TrialOptions& options) {
  const Result<std::string> text =
      read_file(folder / fmt::format("rank{}.json", rank));
  if (!text) {
    return invalid(
        "rank {} ended without iterating over a torch.utils.data.DataLoader or "
        "a leat.Loader in a training step: is it a training script, and did "
        "its interpreter read PYTHONPATH?",
        rank);
  }
  LEAT_TRY(RankRecord record, parse_record(*text));
  if (record.rank != rank) {
    return corrupt("a record of another rank");
  }
  if (record.step_seconds.size() < options.steps &&
      record.seen > options.warmup + options.steps) {
    return invalid(
        "rank {} got {} batches, and {} of the {} steps could be timed: a step "
        "is from one batch to the next of the same epoch, so epochs need "
        "several: smaller batches, or fewer --steps",
        rank, record.seen, record.step_seconds.size(), options.steps);
  }
  if (record.step_seconds.size() < options.steps) {
    return invalid(
        "the script gave {} batches to rank {}, and {} are needed ({} of "
        "warm-up): train for longer, or lower --steps or --warmup",
        record.seen, rank, options.warmup + options.steps + 1, options.warmup);
  }
  return record;
}

/// The notes of a run's processes, in files whose names begin with `kind`.
std::set<std::string> read_notes(const Path& folder, std::string_view kind) {
  std::set<std::string> notes;
  std::error_code failed;
  for (const auto& entry :
       std::filesystem::directory_iterator(folder, failed)) {
    if (!entry.path().filename().string().starts_with(kind)) continue;
    const Result<std::string> text = read_file(entry.path());
    if (!text) continue;
    for (std::size_t begin = 0; begin < text->size();) {
      const std::size_t end = std::min(text->find('\0', begin), text->size());
      notes.insert(text->substr(begin, end - begin));
      begin = end + 1;
    }
  }
  return notes;
}

std::vector<std::string> read_places(const Path& folder) {
  std::vector<std::string> places;
  for (const std::string& place : read_notes(folder, "connected-")) {
    if (places.size() == Trial::kMostPlaces) break;
    // It is the script's to spoil, and is shown.
    if (place.size() > 300 || !std::ranges::all_of(place, [](char c) {
          return ' ' < c && c <= '~';
        })) {
      continue;
    }
    places.push_back(place);
  }
  return places;
}

}  // namespace

Result<Trial> run_trial(const TrialPlace& place, LaunchPlan launch,
                        const TrialOptions& options,
                        const std::stop_token& stop) {
  const std::size_t ranks = launch.nodes.size() * launch.processes_per_node;
  LEAT_TRY_VOID(empty_run_folder(place));
  LEAT_TRY_VOID(write_spec(place, ranks, options));
  std::ranges::copy(variables_for(place), std::back_inserter(launch.variables));
  if (!place.scratch_folders.empty()) {
    launch.wrapper = scratch_words(place.scratch_folders, place.run_folder,
                                   ::geteuid() == 0);
  }
  std::optional<PowerLog> power;
  if (options.reads_power) power.emplace();
  LEAT_TRY_VOID(run_commands(place, launch, stop));
  Trial trial;
  trial.ranks.reserve(ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    LEAT_TRY(RankRecord record, read_record(place.run_folder, rank, options));
    trial.ranks.push_back(std::move(record));
  }
  if (power) {
    trial.power = power->stop_and_tell(trial.ranks.front().measured_from,
                                       trial.ranks.front().measured_until);
  }
  for (const std::string& file : read_notes(place.run_folder, "opened-")) {
    trial.opened_files.emplace_back(file);
  }
  trial.connects_to = read_places(place.run_folder);
  return trial;
}

}  // namespace leat
