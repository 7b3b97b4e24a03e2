// leat verify RUN [RUN]    Proves from order logs that each sample came once,
// and that two runs saw one stream; or names the first difference.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "leat/base/errors.h"
#include "leat/cli/catalogue_flags.h"
#include "leat/cli/commands.h"
#include "leat/cli/progress_line.h"
#include "leat/engine/order_log/compare.h"

namespace leat {
namespace {

namespace fs = std::filesystem;

/// More epochs, or remarks, are only counted.
constexpr std::size_t kMostShown = 20;

struct VerifyFlags {
  std::vector<std::string> runs;
  bool are_sets_enough = false;
  bool is_json = false;
};

bool is_number(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](unsigned char c) {
    return std::isdigit(c) != 0;
  });
}

/// Whether `name` is what a rank, or a later start, makes of "STEM.EXTENSION":
/// "STEM[.rankN][.N].EXTENSION".
bool is_of_run(std::string_view name, const fs::path& run) {
  const std::string stem = run.stem().string();
  const std::string extension = run.extension().string();
  if (name.size() < stem.size() + extension.size() || !name.starts_with(stem) ||
      !name.ends_with(extension)) {
    return false;
  }
  std::string_view middle = name.substr(stem.size());
  middle.remove_suffix(extension.size());
  constexpr std::string_view kRank = ".rank";
  if (middle.starts_with(kRank)) {
    middle.remove_prefix(kRank.size());
    const std::size_t end = std::min(middle.find('.'), middle.size());
    if (!is_number(middle.substr(0, end))) return false;
    middle.remove_prefix(end);
  }
  return middle.empty() || (middle[0] == '.' && is_number(middle.substr(1)));
}

/// Adds the order logs of a folder, or those that belong to the name of a file.
Result<void> add_logs(const std::string& place,
                      std::vector<std::string>& files) {
  std::error_code failed;
  const fs::path path = place;
  const bool is_folder = fs::is_directory(path, failed);
  const fs::path folder = is_folder ? path : path.parent_path();
  std::vector<std::string> found;
  fs::directory_iterator entries(folder.empty() ? "." : folder, failed);
  for (; !failed && entries != fs::directory_iterator();
       entries.increment(failed)) {
    const std::string name = entries->path().filename().string();
    const bool is_wanted = is_folder ? is_order_log(entries->path().string())
                                     : is_of_run(name, path.filename());
    if (is_wanted) found.push_back((folder / name).string());
  }
  if (failed) {
    return invalid("{} cannot be read: {}", place, failed.message());
  }
  if (found.empty()) {
    return invalid(
        "{}: there is no order log{}; a loader writes one with "
        "trace={{\"order_log\": …}}",
        place, is_folder ? " in this folder" : " of that name");
  }
  std::ranges::sort(found);
  files.insert(files.end(), found.begin(), found.end());
  return {};
}

Result<OrderRunFiles> logs_of(const std::string& run) {
  OrderRunFiles logs{.name = run, .files = {}};
  std::istringstream places(run);
  for (std::string place; std::getline(places, place, ',');) {
    if (!place.empty()) LEAT_TRY_VOID(add_logs(place, logs.files));
  }
  std::ranges::sort(logs.files);
  logs.files.erase(std::unique(logs.files.begin(), logs.files.end()),
                   logs.files.end());
  if (logs.files.empty()) return invalid("the name of a run is empty");
  return logs;
}

nlohmann::ordered_json json_of(const OrderEpoch& epoch) {
  return {{"epoch", epoch.epoch},
          {"from", epoch.from},
          {"to", epoch.to},
          {"steps", epoch.steps},
          {"samples", epoch.samples},
          {"distinct", epoch.distinct},
          {"padding", epoch.padding},
          {"substitutes", epoch.substitutes},
          {"is_whole", epoch.is_whole}};
}

nlohmann::ordered_json json_of(const OrderVerdict& verdict) {
  nlohmann::ordered_json json = {
      {"is_proven", !verdict.finding.has_value()},
      {"finding", nullptr},
      {"is_order_of_ranks", verdict.is_order_of_ranks},
      {"data", verdict.data},
      {"digest", verdict.digest.hex()},
      {"epochs", nlohmann::ordered_json::array()},
      {"runs", nlohmann::ordered_json::array()}};
  if (verdict.finding) json["finding"] = *verdict.finding;
  for (const OrderEpoch& epoch : verdict.epochs) {
    json["epochs"].push_back(json_of(epoch));
  }
  for (const OrderVerdict::Run& run : verdict.runs) {
    json["runs"].push_back({{"name", run.name},
                            {"logs", run.logs},
                            {"world_sizes", run.world_sizes},
                            {"notes", run.notes}});
  }
  return json;
}

/// The claim in words, which depends on what kind of epochs there are.
std::string claim_of(const OrderVerdict& verdict) {
  const auto any = [&](auto member) {
    return std::ranges::any_of(verdict.epochs, [member](const OrderEpoch& e) {
      return std::invoke(member, e) != 0;
    });
  };
  std::string claim;
  if (verdict.runs.size() == 2) {
    claim = "the two runs saw one stream: the same samples in each step";
    if (verdict.is_order_of_ranks) claim += ", in the same rows of each rank";
    claim += "; ";
  }
  if (any(&OrderEpoch::is_drawn)) {
    return claim + "its samples are drawn, so they may come again";
  }
  claim += "no sample came twice in an epoch";
  if (any(&OrderEpoch::substitutes)) {
    claim += ", but for those in the place of bad ones";
  }
  return claim;
}

void print(const OrderVerdict& verdict, std::ostream& out) {
  out << fmt::format("proven: {}\n", claim_of(verdict));
  out << fmt::format("  data      {}\n  stream    {}\n", verdict.data,
                     verdict.digest.hex());
  std::uint64_t steps = 0;
  std::uint64_t samples = 0;
  for (std::size_t i = 0; i < verdict.epochs.size(); ++i) {
    const OrderEpoch& epoch = verdict.epochs[i];
    steps += epoch.steps;
    samples += epoch.samples;
    if (i >= kMostShown) continue;
    out << fmt::format("  {:<9} {}\n", fmt::format("epoch {}", epoch.epoch),
                       to_string(epoch));
  }
  out << fmt::format("  in all    {} epochs, {} steps, {} samples\n",
                     verdict.epochs.size(), steps, samples);
  for (const OrderVerdict::Run& run : verdict.runs) {
    out << fmt::format("  {}: {} logs of ranks; world size {}\n", run.name,
                       run.logs, fmt::join(run.world_sizes, ", then "));
  }
}

/// Remarks about the logs, which belong to either verdict.
void print_notes(const OrderVerdict& verdict, std::ostream& out) {
  for (const OrderVerdict::Run& run : verdict.runs) {
    for (std::size_t i = 0; i < std::min(run.notes.size(), kMostShown); ++i) {
      out << fmt::format("  note: {}: {}\n", run.name, run.notes[i]);
    }
    if (run.notes.size() > kMostShown) {
      out << fmt::format("  note: {}: and {} more\n", run.name,
                         run.notes.size() - kMostShown);
    }
  }
}

std::uint64_t bytes_of(const OrderRunFiles& run) {
  std::uint64_t bytes = 0;
  for (const std::string& file : run.files) {
    std::error_code none;
    const std::uint64_t size = fs::file_size(file, none);
    if (!none) bytes += size;
  }
  return bytes;
}

Result<OrderVerdict> verify(const VerifyFlags& flags, CommandContext& context) {
  LEAT_TRY(const OrderRunFiles first, logs_of(flags.runs[0]));
  OrderRunFiles second;
  if (flags.runs.size() == 2) {
    LEAT_TRY(second, logs_of(flags.runs[1]));
  }
  ProgressLine line(context);
  std::uint64_t done = 0;
  const std::uint64_t all = 2 * (bytes_of(first) + bytes_of(second));
  const auto show = [&](std::uint64_t bytes) {
    done += bytes;
    line.show({.what = "verifying",
               .done = static_cast<double>(done),
               .all = static_cast<double>(all)});
  };
  if (flags.runs.size() == 1) return verify_run(first, context.stop, show);
  return compare_runs(first, second, !flags.are_sets_enough, context.stop,
                      show);
}

Result<void> run_verify(const VerifyFlags& flags, CommandContext& context) {
  if (flags.runs.size() > 2) {
    return invalid(
        "verify takes one run or two; several logs of one run are a folder, or "
        "a list with commas");
  }
  Result<OrderVerdict> verdict = verify(flags, context);
  if (!verdict) {
    const Error& error = verdict.error();
    if (error.code() == ErrorCode::kCancelled) return error;
    return invalid(error.message());  // Nothing was proved or disproved.
  }
  if (flags.is_json) {
    context.out << dump_json(json_of(*verdict)) << '\n';
  } else {
    if (!verdict->finding) print(*verdict, context.out);
    print_notes(*verdict, context.out);
  }
  if (!verdict->finding) return {};
  return corrupt("not proven: " + *verdict->finding);
}

std::function<Result<void>(CommandContext&)> add_verify(CLI::App& app) {
  auto flags = std::make_shared<VerifyFlags>();
  app.add_option("RUN", flags->runs,
                 "a folder of order logs, the name that order_log had, or a "
                 "list of these with commas; two runs are compared")
      ->required();
  app.add_flag(
      "--sets", flags->are_sets_enough,
      "with equal world sizes too, let the order within a step differ");
  app.add_flag("--json", flags->is_json, "print one JSON object");
  app.footer(
      "Exits with 0 if the proof holds, 1 if it does not, 2 if a log cannot be "
      "read.\nExample:\n  leat verify one/run.order four/run.order");
  return
      [flags](CommandContext& context) { return run_verify(*flags, context); };
}

}  // namespace

const Command kVerifyCommand{
    .name = "verify",
    .summary = "prove that runs saw one stream, each sample once",
    .add = &add_verify,
};

}  // namespace leat
