// leat explain URL    Runs the loader for a while, or replays a record of one,
// and reports the limit of its speed, the tuner's changes and the gain of more
// resources.

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "leat/base/errors.h"
#include "leat/base/units.h"
#include "leat/cli/catalogue_flags.h"
#include "leat/cli/commands.h"
#include "leat/cli/emulated_step.h"
#include "leat/cli/loader_flags.h"
#include "leat/cli/number_checks.h"
#include "leat/cli/progress_line.h"
#include "leat/engine/loader/loader.h"
#include "leat/engine/read_text.h"
#include "leat/tune/tuner.h"

namespace leat {
namespace {

constexpr std::uint64_t kMostTrace = 256 * kMiB;

struct ExplainFlags {
  std::string url;
  std::string replay;
  std::string duration = "15s";
  std::string step_time = "0";
  LoaderFlags loader;
  StoreFlags store;
  RefreshFlag refresh;
  bool is_json = false;
};

struct Explained {
  std::optional<Explanation> explanation;
  std::vector<Decision> decisions;
};

Result<void> run_for(Loader& loader, Nanoseconds duration,
                     Nanoseconds step_time, ProgressLine& line,
                     const std::stop_token& stop) {
  const TimePoint begin = SteadyClock().now();
  const TimePoint end = begin + duration;
  while (true) {
    LEAT_TRY(const Loader::Iteration epoch, loader.begin());
    while (true) {
      LEAT_TRY(Loader::Next next,
               loader.next_within(epoch, std::chrono::milliseconds(50)));
      if (stop.stop_requested()) {
        return Error(ErrorCode::kCancelled, "explain was interrupted");
      }
      const TimePoint now = SteadyClock().now();
      if (now >= end) return {};
      line.show({.what = "watching the loader",
                 .done = to_seconds(now - begin),
                 .all = to_seconds(duration)});
      if (next.is_end()) break;
      if (next.is_not_yet()) continue;
      if (step_time.count() > 0) emulate_step(step_time, stop);
    }
  }
}

Result<Explained> watch(const ExplainFlags& flags, CommandContext& context) {
  LEAT_TRY(const Nanoseconds duration, parse_duration(flags.duration));
  LEAT_TRY(const Nanoseconds step_time, parse_duration(flags.step_time));
  LEAT_TRY(const LoaderOptions options, flags.loader.loader_options());
  LEAT_TRY(CatalogueOptions catalogue, flags.refresh.catalogue_options());
  ProgressLine line(context);
  catalogue.index.progress = shown_on(line);
  LEAT_TRY(Dataset dataset, open_dataset(flags.url, flags.store.store_options(),
                                         catalogue, context.env, context.stop));
  LEAT_TRY(const std::unique_ptr<Loader> loader,
           Loader::open(std::move(dataset), options, context.env));
  LEAT_TRY_VOID(run_for(*loader, duration, step_time, line, context.stop));
  return Explained{loader->explanation(), loader->decisions()};
}

Result<Explained> replay(const std::string& file) {
  LEAT_TRY(const std::string text, read_text(file, kMostTrace));
  Tuner tuner;
  std::istringstream lines(text);
  std::size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    Result<Observation> seen = parse_observation(line);
    if (!seen) {
      return std::move(seen).error().while_doing(
          "reading line " + std::to_string(number) + " of " + file);
    }
    (void)tuner.observe(*seen);
  }
  return Explained{tuner.explanation(),
                   {tuner.decisions().begin(), tuner.decisions().end()}};
}

Result<void> run_explain(const ExplainFlags& flags, CommandContext& context) {
  if (flags.url.empty() == flags.replay.empty()) {
    return invalid(
        "explain takes a URL, or --replay and a file that --tune-trace wrote");
  }
  LEAT_TRY(const Explained explained,
           flags.replay.empty() ? watch(flags, context) : replay(flags.replay));
  if (!explained.explanation) {
    return invalid(flags.replay.empty()
                       ? "too little was seen to explain: run for longer "
                         "(--for), and not with LEAT_TUNE=off or --no-tune"
                       : flags.replay +
                             " holds too little to explain: record for longer "
                             "(--tune-trace)");
  }
  if (flags.is_json) {
    auto json = nlohmann::ordered_json::parse(to_json(*explained.explanation));
    json["decisions"] = nlohmann::ordered_json::array();
    for (const Decision& decision : explained.decisions) {
      json["decisions"].push_back(
          nlohmann::ordered_json::parse(to_json(decision)));
    }
    context.out << json.dump() << '\n';
    return {};
  }
  context.out << to_text(*explained.explanation);
  if (!explained.decisions.empty()) context.out << "decisions:\n";
  for (const Decision& decision : explained.decisions) {
    context.out << "  " << to_string(decision) << '\n';
  }
  return {};
}

std::function<Result<void>(CommandContext&)> add_explain(CLI::App& app) {
  auto flags = std::make_shared<ExplainFlags>();
  app.add_option("URL", flags->url, "s3://bucket/prefix, http(s)://…, a path");
  app.add_option("--replay", flags->replay,
                 "a file that --tune-trace wrote, instead of running");
  app.add_option("--for", flags->duration, "how long to run")
      ->check(duration_in_units())
      ->capture_default_str();
  app.add_option("--step-time", flags->step_time,
                 "how long each emulated training step takes")
      ->check(duration_in_units())
      ->capture_default_str();
  flags->loader.add_to(app);
  flags->store.add_to(app);
  flags->refresh.add_to(app);
  app.add_flag("--json", flags->is_json, "print one JSON object");
  app.footer(
      "Example:\n"
      "  leat explain s3://bucket/train --ops decode_image,resize:224 \\\n"
      "    --global-batch-size 256 --step-time 200ms");
  return
      [flags](CommandContext& context) { return run_explain(*flags, context); };
}

}  // namespace

const Command kExplainCommand{
    .name = "explain",
    .summary = "explain a loader's bottleneck and the gain of more resources",
    .add = &add_explain,
};

}  // namespace leat
