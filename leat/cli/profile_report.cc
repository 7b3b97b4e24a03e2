#include "leat/cli/profile_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <ostream>

#include "leat/base/errors.h"
#include "leat/engine/read_text.h"
#include "leat/profile/timeline.h"

namespace leat {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kVersion = 1;
constexpr std::uint64_t kMostReportBytes = 64 << 20;
/// As many as a screen has columns, about.
constexpr std::size_t kMostBins = 1000;
constexpr std::size_t kMostRanks = 32;
constexpr std::size_t kMostRankBins = 200;

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 != 0 ? values[half]
                                : (values[half - 1] + values[half]) / 2;
}

Json or_null(double value) { return value > 0 ? Json(value) : Json(nullptr); }
Json or_null(std::uint64_t value) {
  return value > 0 ? Json(value) : Json(nullptr);
}

Json median_or_null(const std::vector<double>& values) {
  return values.empty() ? Json(nullptr) : Json(median(values));
}

Json head_json(const ProfileSettings& settings) {
  return {{"leat_profile", kVersion},
          {"versions", {{"leat", LEAT_VERSION}}},
          {"command", settings.command},
          {"settings",
           {{"nodes", settings.nodes},
            {"nproc_per_node", settings.processes},
            {"steps", settings.steps},
            {"warmup", settings.warmup},
            {"repeats", settings.repeats},
            {"replayed", settings.replayed}}},
          {"cores", settings.cores}};
}

Json parts_json(const StepParts& split) {
  Json parts = Json::object();
  for (const MeasuredPart& part : split.parts) {
    parts[std::string(to_string(part.part))] = {
        {"seconds", part.time.seconds},
        {"low", part.time.low},
        {"high", part.time.high},
        {"fraction", part.time.seconds / split.step.seconds},
        {"is_tie", part.is_tie}};
  }
  return parts;
}

Json conditions_json(const StepParts& split) {
  Json conditions = Json::object();
  for (std::size_t c = 0; c < split.seconds.size(); ++c) {
    if (split.seconds[c] > 0) {
      conditions[std::string(to_string(static_cast<Condition>(c)))] =
          split.seconds[c];
    }
  }
  return conditions;
}

Json files_json(const std::vector<Residency>& files) {
  Json shares = Json::array();
  for (const Residency& one : files) {
    shares.push_back(
        static_cast<double>(one.resident_bytes) /
        static_cast<double>(std::max<std::uint64_t>(one.bytes, 1)));
  }
  return shares;
}

Json reads_json(const std::vector<RelayCounts>& reads) {
  Json runs = Json::array();
  for (const RelayCounts& one : reads) {
    runs.push_back({{"from_store", one.passed_on},
                    {"from_memory", one.from_memory},
                    {"writes_kept_away", one.kept_away}});
  }
  return runs;
}

/// The requests of a batch to the store, in the last cold run.
Json fetch_json(const TrainingTrials& trials) {
  if (trials.cold_reads.empty() || trials.cold_batches == 0) return nullptr;
  const RelayCounts& all = trials.cold_reads.back();
  if (all.passed_on == 0) return nullptr;
  const RelayCounts& reads = trials.cold_batch_reads;
  const auto batches = static_cast<double>(trials.cold_batches);
  const double whole = static_cast<double>(all.until_last_byte.count());
  const double first = static_cast<double>(all.until_first_byte.count());
  return {
      {"gets", static_cast<double>(reads.passed_on - reads.lists) / batches},
      {"lists", static_cast<double>(reads.lists) / batches},
      {"bytes", static_cast<double>(reads.bytes) / batches},
      {"latency_share", whole > 0 ? Json(first / whole) : Json(nullptr)}};
}

Json timeline_json(const TrainingTrials& trials) {
  const Timeline timeline = timeline_of(trials.cold_step_seconds,
                                        trials.cold_wait_seconds, kMostBins);
  Json bins = Json::array();
  for (const TimelineBin& bin : timeline.bins) {
    bins.push_back(
        {bin.mean_seconds, bin.most_seconds, bin.mean_wait, bin.most_wait});
  }
  return {{"steps", timeline.steps},
          {"steps_a_bin", timeline.steps_a_bin},
          {"bins", std::move(bins)}};
}

/// The ranks' times, small enough for a page: of a thousand ranks, those that
/// waited least and most.
Json ranks_json(const TrainingTrials& trials) {
  std::vector<std::size_t> shown(trials.cold_ranks.size());
  std::iota(shown.begin(), shown.end(), 0);
  if (shown.size() > kMostRanks) {
    const auto waited = [&](std::size_t rank) {
      const auto& waits = trials.cold_ranks[rank].wait_seconds;
      return std::accumulate(waits.begin(), waits.end(), 0.0);
    };
    std::ranges::stable_sort(shown, {}, waited);
    shown.erase(shown.begin() + kMostRanks / 2, shown.end() - kMostRanks / 2);
    std::ranges::sort(shown);
  }
  Json ranks = Json::array();
  for (const std::size_t rank : shown) {
    const auto& steps = trials.cold_ranks[rank];
    const Timeline timeline =
        timeline_of(steps.step_seconds, steps.wait_seconds, kMostRankBins);
    Json bins = Json::array();
    for (const TimelineBin& bin : timeline.bins) {
      bins.push_back({bin.mean_seconds, bin.mean_wait});
    }
    ranks.push_back({{"rank", rank},
                     {"steps_a_bin", timeline.steps_a_bin},
                     {"bins", std::move(bins)}});
  }
  return ranks;
}

Json waits_json(const TrainingTrials& trials) {
  const WaitSpread spread = spread_of(trials.cold_wait_seconds);
  const WaitHistogram histogram = histogram_of(trials.cold_wait_seconds);
  return {{"half", spread.half},
          {"most_of_ten", spread.most_of_ten},
          {"most_of_hundred", spread.most_of_hundred},
          {"longest", spread.longest},
          {"lower", histogram.lower},
          {"counts", histogram.counts}};
}

}  // namespace

Json profile_json(const ProfileSettings& settings, const TrainingTrials& trials,
                  const StepParts& split) {
  Json report = head_json(settings);
  report["versions"]["torch"] = trials.torch;
  report["step_seconds"] = split.step.seconds;
  report["step_low"] = split.step.low;
  report["step_high"] = split.step.high;
  report["parts"] = parts_json(split);
  report["condition_seconds"] = conditions_json(split);
  report["supply_seconds"] = {
      {"warm", median_or_null(trials.warm_supply_seconds)},
      {"cold", median_or_null(trials.cold_supply_seconds)}};
  report["supply_cpu_seconds"] =
      or_null(median(trials.warm_supply_cpu_seconds));
  report["naive_wait_fraction"] = median(trials.naive_wait_fractions);
  report["fetch_a_batch"] = fetch_json(trials);
  report["gradients"] = {{"bytes", or_null(trials.gradient_bytes)},
                         {"buckets", or_null(trials.gradient_buckets)}};
  report["timeline"] = timeline_json(trials);
  report["ranks"] = ranks_json(trials);
  report["waits"] = waits_json(trials);
  report["proof"] = {{"files", trials.files},
                     {"warm_resident", files_json(trials.warm_files)},
                     {"cold_resident", files_json(trials.cold_files)},
                     {"warm_reads", reads_json(trials.warm_reads)},
                     {"cold_reads", reads_json(trials.cold_reads)},
                     {"why_no_warm", trials.why_no_warm},
                     {"connects_to", trials.connects_to}};
  report["batch_rows"] = trials.rows;
  report["epoch_batches"] = or_null(trials.epoch_batches);
  report["loader"] = trials.loader;
  report["workers"] = trials.workers ? Json(*trials.workers) : Json(nullptr);
  report["loads_ahead"] = trials.loads_ahead;
  report["is_pipelined"] = trials.is_pipelined;
  report["accelerator"] = trials.accelerator;
  return report;
}

Json failed_profile_json(const ProfileSettings& settings,
                         const std::string& why) {
  Json report = head_json(settings);
  report["failed"] = why;
  return report;
}

std::string time_text(double seconds) {
  struct Unit {
    const char* name;
    double a_second;
  };
  constexpr Unit kUnits[] = {{"h", 1.0 / 3600}, {"min", 1.0 / 60}, {"s", 1},
                             {"ms", 1e3},       {"us", 1e6},       {"ns", 1e9}};
  if (seconds == 0) return "0 s";
  const auto* unit = std::ranges::begin(kUnits);
  // A value that would round up to 1,000 is shown in the next unit.
  constexpr double kLeast[] = {7200, 120, 0.9995, 0.9995e-3, 0.9995e-6};
  for (const double least : kLeast) {
    if (std::abs(seconds) >= least) break;
    ++unit;
  }
  const double value = seconds * unit->a_second;
  const double size = std::abs(value);
  return fmt::format("{:.{}f} {}", value,
                     size < 9.995 ? 2 : (size < 99.95 ? 1 : 0), unit->name);
}

namespace {

std::string interval_text(const Json& low, const Json& high) {
  return fmt::format("({} to {})", time_text(low.get<double>()),
                     time_text(high.get<double>()));
}

/// Notes that a reader of the parts needs, a line each.
void print_notes(const Json& report, std::ostream& out) {
  if (report["settings"]["repeats"].get<std::uint32_t>() < 2) {
    out << "one run under each condition: the intervals are of its steps, and "
           "another run may lie outside; --repeats 3 tells\n";
  }
  if (const auto& why = report["proof"]["why_no_warm"].get<std::string>();
      !why.empty()) {
    out << "preparation and fetch are one part: " << why << '\n';
  } else if (const Json& own = report["proof"]["connects_to"]; !own.empty()) {
    std::vector<std::string> places = own;
    out << fmt::format(
        "while batches are made the script connects to {} by itself: what it "
        "reads there comes from the network in the warm runs too, and is "
        "counted as preparation, not fetch; read it from files, or from a "
        "bucket at AWS_ENDPOINT_URL, to tell them apart\n",
        fmt::join(places, ", "));
  }
}

}  // namespace

void print_profile(const Json& report, std::ostream& out) {
  const double step = report["step_seconds"].get<double>();
  out << fmt::format("a step takes {} {}\n\n", time_text(step),
                     interval_text(report["step_low"], report["step_high"]));
  for (const auto& [name, part] : report["parts"].items()) {
    const double seconds = part["seconds"].get<double>();
    out << fmt::format("  {:<13} {:>9}  {:>5.1f} %   {}{}\n", name,
                       time_text(seconds), 100 * seconds / step,
                       interval_text(part["low"], part["high"]),
                       part["is_tie"].get<bool>()
                           ? "  nothing, or hidden behind what is above it"
                           : "");
  }
  out << fmt::format(
      "\na timer in the script would say that it waits {:.1f} % for data\n",
      100 * report["naive_wait_fraction"].get<double>());
  print_notes(report, out);
}

Result<Json> read_profile_report(const std::string& path) {
  LEAT_TRY(const std::string text, read_text(path, kMostReportBytes));
  Json report = Json::parse(text, nullptr, false);
  const auto wrong = [&](const std::string& what) {
    return invalid(
        "{}: {}; make one by leat profile --json -- python train.py > FILE",
        path, what);
  };
  if (!report.is_object() || !report.contains("leat_profile")) {
    return wrong("is no report of leat profile");
  }
  if (report["leat_profile"] != kVersion) {
    return wrong(fmt::format("is a report of version {}, and {} is read here",
                             report["leat_profile"].dump(), kVersion));
  }
  return report;
}

}  // namespace leat
