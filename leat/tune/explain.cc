#include "leat/tune/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "leat/base/units.h"
#include "leat/tune/stage_allocation.h"

namespace leat {
namespace {

// Less than this share of the time in next() is not worth a change.
constexpr double kWaits = 0.05;
constexpr double kFullShare = 0.8;
constexpr double kAllBytes = 0.9;  // This share of the allowed bytes.
// Requests come in bursts: a stage is short of units before all are always
// used.
constexpr double kNearlyFull = 0.55;

double use(double used, std::size_t units) {
  return units == 0 ? 0 : used / static_cast<double>(units);
}

double cores_used(const StageRates& rates) {
  return rates.task_cpu_seconds * rates.tasks_per_sample *
         rates.samples_per_second;
}

double bytes_read(const StageRates& rates) {
  return rates.bytes_per_read * rates.reads_per_sample *
         rates.samples_per_second;
}

std::optional<double> gain_of(const StageRates& rates, const Means& now,
                              const Means& then) {
  const std::optional<double> before = speed_with(rates, now);
  const std::optional<double> after = speed_with(rates, then);
  if (!before || !after || *before <= 0) return std::nullopt;
  return *after / *before - 1;
}

/// A random pass over the data hits in proportion to the share that is kept.
std::optional<double> gain_of_cache(const StageRates& rates,
                                    const Observation& at, const Means& now) {
  if (at.data_bytes == 0 || rates.reads_per_sample == 0) return std::nullopt;
  const double more =
      static_cast<double>(kGiB) / static_cast<double>(at.data_bytes);
  const double misses = 1 - rates.hit_share;
  if (misses <= 0) return 0.0;
  Means then = now;
  then.reads = std::max(0.0, misses - more) / misses;
  if (then.store_rate && then.reads > 0) *then.store_rate /= then.reads;
  if (then.reads == 0) then.store_rate.reset();
  return gain_of(rates, now, then);
}

std::string reason_of(Bottleneck bottleneck, const StageRates& rates,
                      const Observation& now) {
  switch (bottleneck) {
    case Bottleneck::kTraining:
      return fmt::format("training waits {:.0f} % of the time",
                         100 * rates.wait_share);
    case Bottleneck::kThreads:
      return fmt::format("{:.1f} of {} threads busy, {:.2f} ms a sample",
                         rates.mean_busy_threads, now.threads,
                         1e3 * rates.task_seconds);
    case Bottleneck::kCores:
      return fmt::format("{:.1f} of {:.0f} cores busy, {:.2f} ms a sample",
                         cores_used(rates), now.cores,
                         1e3 * rates.task_cpu_seconds);
    case Bottleneck::kRequests:
    case Bottleneck::kStore:
      return fmt::format(
          "{:.1f} of {} requests in flight, {:.1f} ms each, {}/s",
          rates.in_flight_of(now.in_flight), now.in_flight,
          1e3 * rates.latency_seconds,
          format_bytes(static_cast<std::uint64_t>(bytes_read(rates))));
    case Bottleneck::kBandwidth:
      return fmt::format(
          "{}/s of the {}/s that the agent of this node allows",
          format_bytes(static_cast<std::uint64_t>(bytes_read(rates))),
          format_bytes(now.most_bytes_per_second));
    case Bottleneck::kThrottled:
      return fmt::format("the store throttles, and is sent {:.0f} requests/s",
                         now.most_reads_per_second);
    case Bottleneck::kMemory:
      return fmt::format("{} of memory= is in use",
                         format_bytes(now.memory_bytes));
    case Bottleneck::kLookahead:
      return fmt::format(
          "{:.1f} of {} requests and {:.1f} of {} threads in use",
          rates.in_flight_of(now.in_flight), now.in_flight,
          rates.mean_busy_threads, now.threads);
  }
  return "";
}

/// Describes the measured time of the stage.
std::string visit_of(const StageLine& stage) {
  std::string text = fmt::format("{:.2f} a sample, {:.2f} ms each",
                                 stage.visits, 1e3 * stage.seconds);
  if (stage.cpu_seconds) {
    text += fmt::format(", {:.2f} ms of a core", 1e3 * *stage.cpu_seconds);
  }
  if (stage.bytes) {
    text += ", " + format_bytes(static_cast<std::uint64_t>(*stage.bytes));
  }
  return text;
}

nlohmann::ordered_json number_or_null(const std::optional<double>& number) {
  if (!number || !std::isfinite(*number)) return nullptr;
  return *number;
}

}  // namespace

std::string_view to_string(Bottleneck bottleneck) {
  switch (bottleneck) {
    case Bottleneck::kTraining:
      return "training";
    case Bottleneck::kThreads:
      return "threads";
    case Bottleneck::kCores:
      return "cores";
    case Bottleneck::kRequests:
      return "max_in_flight";
    case Bottleneck::kBandwidth:
      return "bandwidth";
    case Bottleneck::kThrottled:
      return "throttling";
    case Bottleneck::kStore:
      return "the store";
    case Bottleneck::kMemory:
      return "memory";
    case Bottleneck::kLookahead:
      return "lookahead";
  }
  return "unknown";
}

std::optional<double> speed_with(const StageRates& rates, const Means& means) {
  std::vector<Stage> stages;
  const std::optional<double> thread = rates.per_thread();
  const std::optional<double> core = rates.per_core();
  if (thread) {
    stages.push_back({.rate_per_unit = *thread,
                      .most_units = means.threads,
                      .takes_cores = false});
  }
  if (core) stages.push_back({.rate_per_unit = *core});
  if (const std::optional<double> request = rates.per_request();
      request && means.reads > 0) {
    stages.push_back({.rate_per_unit = *request / means.reads,
                      .most_units = means.in_flight,
                      .takes_cores = false});
  }
  const auto add_sequential = [&](std::optional<double> rate) {
    if (!rate) return;
    stages.push_back(
        {.rate_per_unit = *rate, .most_units = 1, .takes_cores = false});
  };
  add_sequential(rates.training_rate);
  add_sequential(means.store_rate);
  const double most = allocate_stages(stages, means.cores).samples_per_second;
  if (std::isinf(most)) return std::nullopt;
  return most;
}

Bottleneck bottleneck_of(const StageRates& rates, const Observation& now,
                         bool knows_store) {
  if (rates.wait_share < kWaits) return Bottleneck::kTraining;
  const double threads = use(rates.mean_busy_threads, now.threads);
  const double requests = use(rates.mean_in_flight, now.in_flight);
  const double most = std::max(threads, requests);
  if (cores_used(rates) >= 0.9 * now.cores) return Bottleneck::kCores;
  if (now.most_bytes_per_second > 0 &&
      bytes_read(rates) >=
          kAllBytes * static_cast<double>(now.most_bytes_per_second)) {
    return Bottleneck::kBandwidth;
  }
  if (now.most_reads_per_second > 0) return Bottleneck::kThrottled;
  if (most < kFullShare && rates.memory_share > rates.wait_share / 2) {
    return Bottleneck::kMemory;
  }
  if (most < kNearlyFull) {
    return knows_store ? Bottleneck::kStore : Bottleneck::kLookahead;
  }
  if (threads > requests) return Bottleneck::kThreads;
  return knows_store ? Bottleneck::kStore : Bottleneck::kRequests;
}

Explanation explain(const StageRates& rates, const Observation& now,
                    std::optional<double> store_rate) {
  Explanation found;
  found.bottleneck = bottleneck_of(rates, now, store_rate.has_value());
  if (found.bottleneck == Bottleneck::kBandwidth ||
      found.bottleneck == Bottleneck::kThrottled) {
    store_rate = rates.samples_per_second;
  }
  const Means means{.threads = static_cast<double>(now.threads),
                    .in_flight = static_cast<double>(now.in_flight),
                    .cores = now.cores,
                    .store_rate = store_rate};
  found.reason = reason_of(found.bottleneck, rates, now);
  found.samples_per_second = rates.samples_per_second;
  found.wait_share = rates.wait_share;
  StageRates alone = rates;
  alone.training_rate.reset();
  if (const std::optional<double> most = speed_with(alone, means);
      most && rates.samples_per_second > 0) {
    found.headroom = std::max(0.0, *most / rates.samples_per_second - 1);
  }
  const auto times = [](std::optional<double> rate, double units) {
    return rate ? std::optional<double>(*rate * units) : std::nullopt;
  };
  found.stages = {
      {.name = "fetch",
       .samples_per_second = times(rates.per_request(), means.in_flight),
       .used = rates.in_flight_of(now.in_flight),
       .units = means.in_flight,
       .visits = rates.reads_per_sample,
       .seconds = rates.latency_seconds,
       .cpu_seconds = {},
       .bytes = rates.bytes_per_read},
      {.name = "decode",
       .samples_per_second = times(rates.per_thread(), means.threads),
       .used = rates.mean_busy_threads,
       .units = means.threads,
       .visits = rates.tasks_per_sample,
       .seconds = rates.task_seconds,
       .cpu_seconds = rates.task_cpu_seconds,
       .bytes = {}},
      {.name = "training",
       .samples_per_second = rates.training_rate,
       .used = 1 - rates.wait_share,
       .units = 1,
       .visits = 1,
       .seconds = rates.training_rate ? 1 / *rates.training_rate : 0,
       .cpu_seconds = {},
       .bytes = {}}};
  Means core = means;
  ++core.threads;
  ++core.cores;
  Means connection = means;
  ++connection.in_flight;
  found.next = {
      {.name = "core", .gain = gain_of(rates, means, core)},
      {.name = "connection", .gain = gain_of(rates, means, connection)},
      {.name = "GiB of cache", .gain = gain_of_cache(rates, now, means)}};
  return found;
}

std::string to_text(const Explanation& explanation) {
  std::string text = fmt::format(
      "{:.1f} samples/s; training waits {:.0f} % of the time\n"
      "bottleneck: {} ({})\n",
      explanation.samples_per_second, 100 * explanation.wait_share,
      to_string(explanation.bottleneck), explanation.reason);
  text += explanation.headroom
              ? fmt::format("headroom beyond this speed: {:.0f} %\n",
                            100 * *explanation.headroom)
              : "headroom: not known\n";
  for (const StageLine& stage : explanation.stages) {
    text += fmt::format("  {:<9} {:>7.1f} of {:<6g} in use", stage.name,
                        stage.used, stage.units);
    if (stage.samples_per_second) {
      text +=
          fmt::format("  up to {:.1f} samples/s", *stage.samples_per_second);
    }
    if (stage.seconds > 0) text += "; " + visit_of(stage);
    text += '\n';
  }
  for (const NextUnit& unit : explanation.next) {
    text += unit.gain ? fmt::format("one more {}: {:+.1f} %\n", unit.name,
                                    100 * *unit.gain)
                      : fmt::format("one more {}: not known\n", unit.name);
  }
  return text;
}

std::string to_json(const Explanation& explanation) {
  nlohmann::ordered_json json = {
      {"samples_per_second", explanation.samples_per_second},
      {"wait_fraction", explanation.wait_share},
      {"bottleneck", std::string(to_string(explanation.bottleneck))},
      {"reason", explanation.reason},
      {"headroom", number_or_null(explanation.headroom)}};
  json["stages"] = nlohmann::ordered_json::array();
  for (const StageLine& stage : explanation.stages) {
    json["stages"].push_back(
        {{"name", stage.name},
         {"samples_per_second", number_or_null(stage.samples_per_second)},
         {"used", stage.used},
         {"units", stage.units},
         {"visits_per_sample", stage.visits},
         {"seconds_per_visit", stage.seconds},
         {"cpu_seconds_per_visit", number_or_null(stage.cpu_seconds)},
         {"bytes_per_visit", number_or_null(stage.bytes)}});
  }
  json["next"] = nlohmann::ordered_json::array();
  for (const NextUnit& unit : explanation.next) {
    json["next"].push_back(
        {{"name", unit.name}, {"gain", number_or_null(unit.gain)}});
  }
  return json.dump();
}

}  // namespace leat
