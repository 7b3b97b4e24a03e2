#include "leat/profile/what_if.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "leat/base/errors.h"

namespace leat {
namespace {

constexpr double kRemoved = 0.01;
constexpr double kWorthRemoving = 0.02;
constexpr double kMostFactor = 64;
constexpr int kBisections = 40;
/// As a multiple, or as a count.
constexpr double kMostAsked = 1e6;

constexpr std::array kShares = {0.0, 0.1, 0.2, 0.3, 0.4, 0.5,
                                0.6, 0.7, 0.8, 0.9, 1.0};
constexpr std::array kFactors = {0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 8.0};
constexpr std::array kCounts = {1.0, 2.0, 4.0, 8.0, 16.0};

void turn(WhatIfSetting& setting, Knob knob, double value) {
  switch (knob) {
    case Knob::kLoadAhead:
      setting.loads_ahead = value > 0;
      break;
    case Knob::kCached:
      setting.cached = value;
      break;
    case Knob::kWorkers:
      setting.workers = static_cast<std::uint32_t>(value);
      break;
    case Knob::kCores:
      setting.cores = value;
      break;
    case Knob::kBandwidth:
      setting.bandwidth = value;
      break;
    case Knob::kLatency:
      setting.latency = value;
      break;
    case Knob::kAccelerator:
      setting.accelerator = value;
      break;
    case Knob::kDevices:
      setting.devices = static_cast<std::uint32_t>(value);
      break;
    case Knob::kNodes:
    case Knob::kCount:
      setting.nodes = static_cast<std::uint32_t>(value);
      break;
  }
}

/// The measurement that this knob alone needs and that is missing, or nothing.
std::string_view lack_of(const MeasuredStep& measured, Knob knob) {
  switch (knob) {
    case Knob::kCached:
      return measured.has_warm ? ""
                               : "preparation and fetch were not told apart";
    case Knob::kWorkers:
      return measured.workers ? ""
                              : "no worker processes of torch's DataLoader "
                                "made the batches";
    case Knob::kCores:
      if (!measured.has_warm) return "preparation was not told from fetch";
      return measured.preparation_cpu ? ""
                                      : "the CPU time of preparing a batch "
                                        "was not measured";
    case Knob::kBandwidth:
    case Knob::kLatency:
      if (!measured.has_warm) return "fetch was not told from preparation";
      return measured.latency_share ? ""
                                    : "no read of a bucket was timed: files "
                                      "are read by the kernel";
    case Knob::kDevices:
      return measured.devices > 1 ? ""
                                  : "one process a node was run: "
                                    "--nproc-per-node 2 shows what they cost";
    case Knob::kNodes:
      return measured.nodes > 1 ? ""
                                : "one node was run: --node for each of two "
                                  "shows what they cost";
    default:
      return "";
  }
}

/// The measurement that is missing to turn this knob, or nothing.
std::string_view why_not(const MeasuredStep& measured, Knob knob) {
  const std::string_view own = lack_of(measured, knob);
  if (!own.empty() || measured.has_supply) return own;
  return "the time to make a batch while nobody trains was not measured: its "
         "epoch ended with the steps, and the loader began no other; lower "
         "--steps, or give an epoch more batches";
}

bool is_count(Knob knob) {
  return knob == Knob::kWorkers || knob == Knob::kDevices ||
         knob == Knob::kNodes;
}

/// Includes the measured value.
std::vector<double> values_of(const MeasuredStep& measured, Knob knob) {
  if (knob == Knob::kCached) return {kShares.begin(), kShares.end()};
  if (!is_count(knob)) return {kFactors.begin(), kFactors.end()};
  const double here = knob == Knob::kWorkers   ? measured.workers.value_or(1)
                      : knob == Knob::kDevices ? measured.devices
                                               : measured.nodes;
  std::vector<double> values(kCounts.begin(), kCounts.end());
  const auto after = std::ranges::lower_bound(values, here);
  if (after == values.end() || *after != here) values.insert(after, here);
  return values;
}

double part_of(const PredictedStep& step, StepPart part) {
  switch (part) {
    case StepPart::kInterconnect:
      return step.interconnect;
    case StepPart::kNetwork:
      return step.network;
    case StepPart::kPreparation:
      return step.preparation;
    case StepPart::kFetch:
    case StepPart::kInput:
      return step.fetch;
    default:
      return step.compute;
  }
}

/// The knob's value where the work in the way is `factor` times less.
double value_at(const MeasuredStep& measured, Knob knob, double factor) {
  switch (knob) {
    case Knob::kLoadAhead:
      return 1;
    case Knob::kWorkers:
      return std::ceil(std::max(measured.workers.value_or(1), 1U) * factor);
    case Knob::kCached:
      return factor >= kMostFactor ? 1 : 1 - 1 / factor;
    case Knob::kLatency:
      return 1 / factor;
    default:
      return factor;
  }
}

std::span<const Knob> knobs_against(StepPart part) {
  static constexpr std::array kFetch = {Knob::kLoadAhead, Knob::kWorkers,
                                        Knob::kBandwidth, Knob::kLatency,
                                        Knob::kCached};
  static constexpr std::array kPreparation = {Knob::kLoadAhead, Knob::kWorkers,
                                              Knob::kCores};
  static constexpr std::array kInput = {Knob::kLoadAhead, Knob::kWorkers};
  switch (part) {
    case StepPart::kFetch:
      return kFetch;
    case StepPart::kPreparation:
      return kPreparation;
    case StepPart::kInput:
      return kInput;
    default:
      return {};
  }
}

struct Found {
  Change change;
  double factor = 1;
};

/// Whether batches are made while training computes, as far as is known.
bool loads_ahead(const MeasuredStep& measured, const WhatIfSetting& setting) {
  return setting.loads_ahead || measured.loads_ahead || measured.is_pipelined ||
         setting.workers.value_or(measured.workers.value_or(0)) > 0;
}

/// The least turn of this knob that removes the part, if any does.
std::optional<Found> least(const StepModel& model, const WhatIfSetting& from,
                           StepPart part, Knob knob) {
  const MeasuredStep& measured = model.measured();
  if (!why_not(measured, knob).empty()) return std::nullopt;
  const PredictedStep before = model.predict(from);
  const auto with = [&](double factor) {
    WhatIfSetting setting = from;
    turn(setting, knob, value_at(measured, knob, factor));
    return model.predict(setting);
  };
  const auto is_removed = [&](double factor) {
    const PredictedStep step = with(factor);
    return part_of(step, part) <= kRemoved * step.seconds() &&
           before.seconds() - step.seconds() >= part_of(before, part) / 2;
  };
  if (knob == Knob::kLoadAhead) {
    if (loads_ahead(measured, from) || !is_removed(1)) return std::nullopt;
    return Found{{knob, 1, with(1).seconds()}, 1};
  }
  // One worker where there was none is loading ahead.
  if (knob == Knob::kWorkers && is_removed(1)) return std::nullopt;
  if (!is_removed(kMostFactor)) return std::nullopt;
  double low = 1;
  double high = kMostFactor;
  for (int i = 0; i < kBisections; ++i) {
    const double middle = std::sqrt(low * high);
    (is_removed(middle) ? high : low) = middle;
  }
  return Found{{knob, value_at(measured, knob, high), with(high).seconds()},
               high};
}

/// The largest worth removing that is none of `stay`, if there is one.
std::optional<StepPart> largest_stall(const PredictedStep& step, bool has_warm,
                                      const std::vector<StepPart>& stay) {
  std::optional<StepPart> largest;
  double most = kWorthRemoving * step.seconds();
  for (const StepPart part :
       {StepPart::kInterconnect, StepPart::kNetwork, StepPart::kPreparation,
        has_warm ? StepPart::kFetch : StepPart::kInput}) {
    if (std::ranges::count(stay, part) > 0 || part_of(step, part) <= most) {
      continue;
    }
    largest = part;
    most = part_of(step, part);
  }
  return largest;
}

}  // namespace

std::string_view to_string(Knob knob) {
  constexpr std::array<std::string_view, static_cast<std::size_t>(Knob::kCount)>
      kNames = {"load_ahead", "cached",      "workers", "cores", "bandwidth",
                "latency",    "accelerator", "devices", "nodes"};
  return kNames.at(static_cast<std::size_t>(knob));
}

Result<void> turn(WhatIfSetting& setting, const MeasuredStep& measured,
                  std::string_view knob, double value) {
  for (auto one = Knob::kLoadAhead; one != Knob::kCount;
       one = static_cast<Knob>(static_cast<int>(one) + 1)) {
    if (knob != to_string(one)) continue;
    if (const std::string_view missing = why_not(measured, one);
        !missing.empty()) {
      return invalid("{} cannot be judged: {}", knob, missing);
    }
    const bool is_share = one == Knob::kCached || one == Knob::kLoadAhead;
    // Without workers the training's own process makes batches.
    if (!(is_share ? value >= 0 && value <= 1
                   : (value > 0 || (value == 0 && one == Knob::kWorkers)) &&
                         value <= kMostAsked) ||
        (is_count(one) && value != std::floor(value))) {
      return invalid("{}={:g}: {}", knob, value,
                     is_share        ? "from 0 to 1"
                     : is_count(one) ? "a whole number from 1 on"
                                     : "a multiple above 0");
    }
    turn(setting, one, value);
    return {};
  }
  return invalid(
      "\"{}\" is none of load_ahead, cached, workers, cores, bandwidth, "
      "latency, accelerator, devices, nodes",
      knob);
}

std::vector<Curve> what_if_curves(const StepModel& model) {
  std::vector<Curve> curves;
  for (auto knob = Knob::kCached; knob != Knob::kCount;
       knob = static_cast<Knob>(static_cast<int>(knob) + 1)) {
    Curve curve{.knob = knob,
                .points = {},
                .why_not = std::string(why_not(model.measured(), knob))};
    if (curve.why_not.empty()) {
      for (const double value : values_of(model.measured(), knob)) {
        WhatIfSetting setting = model.measured_setting();
        turn(setting, knob, value);
        curve.points.push_back(
            {value, model.predict(setting), model.speedup(setting)});
      }
    }
    curves.push_back(std::move(curve));
  }
  return curves;
}

std::vector<Removal> removals(const StepModel& model) {
  std::vector<Removal> removals;
  WhatIfSetting setting = model.measured_setting();
  std::vector<StepPart> stay;
  // Each takes one knob out of play, or a part.
  while (removals.size() < static_cast<std::size_t>(Knob::kCount)) {
    const PredictedStep step = model.predict(setting);
    const auto part = largest_stall(step, model.measured().has_warm, stay);
    if (!part) break;
    Removal removal{*part, part_of(step, *part), {}};
    std::vector<Found> found;
    for (const Knob knob : knobs_against(*part)) {
      if (const auto one = least(model, setting, *part, knob)) {
        found.push_back(*one);
      }
    }
    std::ranges::stable_sort(found, {}, &Found::factor);
    for (const Found& one : found) removal.changes.push_back(one.change);
    removals.push_back(std::move(removal));
    if (found.empty()) {
      stay.push_back(*part);
    } else {
      turn(setting, found.front().change.knob, found.front().change.value);
    }
  }
  return removals;
}

}  // namespace leat
