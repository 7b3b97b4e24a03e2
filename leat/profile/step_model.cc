#include "leat/profile/step_model.h"

#include <algorithm>
#include <cmath>

#include "leat/base/errors.h"

namespace leat {
namespace {

/// Above this share of a node's CPU time, cores are what preparation lacks.
constexpr double kBusyShare = 0.8;

/// The share of a batch's supply that hid behind training, out of the part that
/// could.
double overlap(double training, double supply, double stall) {
  const double most = std::min(training, supply);
  return most > 0 ? std::clamp((supply - stall) / most, 0.0, 1.0) : 1;
}

double stall(double training, double supply, double overlap) {
  return supply - overlap * std::min(training, supply);
}

/// Exposed time of a ring of `members`, from that of `measured` ones.
double ring(double seconds, std::uint32_t measured, std::uint32_t members) {
  if (members == measured || measured < 2) return seconds;
  const auto traffic = [](double n) { return (n - 1) / n; };
  return seconds * traffic(members) / traffic(measured);
}

/// The time to prepare a batch whose bytes are in memory, if nothing waits for
/// a core.
double unhindered_supply(const MeasuredStep& measured) {
  if (!measured.preparation_cpu || !measured.has_warm) {
    return measured.warm_supply;
  }
  const double cpu = *measured.preparation_cpu;
  const double busy = cpu * measured.devices / measured.cores;
  if (busy < kBusyShare * measured.warm_supply) return measured.warm_supply;
  // It waited for the cores: nobody has seen the effect of more of them.
  if (measured.is_pipelined || !measured.workers) return 0;
  return std::min(cpu / std::max(*measured.workers, 1U), measured.warm_supply);
}

}  // namespace

Result<StepModel> StepModel::of(const MeasuredStep& measured) {
  for (const double seconds :
       {measured.compute, measured.interconnect, measured.network,
        measured.preparation, measured.fetch, measured.warm_supply,
        measured.cold_supply, measured.preparation_cpu.value_or(0),
        measured.cores}) {
    if (!(seconds >= 0) || !std::isfinite(seconds)) {
      return invalid("a measured step has a part of {}", seconds);
    }
  }
  if (measured.compute == 0) return invalid("a step without compute");
  if (measured.devices == 0 || measured.nodes == 0) {
    return invalid("a step without devices");
  }
  if (measured.preparation_cpu && measured.cores == 0) {
    return invalid("CPU time without cores");
  }
  if (const double share = measured.latency_share.value_or(0);
      !(share >= 0 && share <= 1)) {
    return invalid("a share of {}", share);
  }
  return StepModel(measured);
}

StepModel::StepModel(const MeasuredStep& measured) : measured_(measured) {
  // A stall is time that the supply took: if less was measured while nobody
  // trained, that is noise, or cores that training takes away.
  measured_.warm_supply =
      std::max(measured_.warm_supply, measured_.preparation);
  measured_.cold_supply =
      std::max({measured_.cold_supply, measured_.preparation + measured_.fetch,
                measured_.has_warm ? measured_.warm_supply : 0});
  unhindered_supply_ = unhindered_supply(measured_);
  const double training =
      measured_.compute + measured_.interconnect + measured_.network;
  warm_overlap_ =
      overlap(training, measured_.warm_supply, measured_.preparation);
  cold_overlap_ = overlap(training, measured_.cold_supply,
                          measured_.preparation + measured_.fetch);
}

WhatIfSetting StepModel::measured_setting() const {
  return {.devices = measured_.devices, .nodes = measured_.nodes};
}

double StepModel::cores_supply(const WhatIfSetting& setting) const {
  if (!measured_.preparation_cpu || !measured_.has_warm) return 0;
  const double cpu = *measured_.preparation_cpu;
  const double before = cpu * measured_.devices / measured_.cores;
  const double after =
      cpu * setting.devices / (measured_.cores * setting.cores);
  if (before < kBusyShare * measured_.warm_supply) return after;
  return measured_.warm_supply * after / before;
}

double StepModel::workers_supply(const WhatIfSetting& setting,
                                 double seconds) const {
  if (!setting.workers || !measured_.workers) return seconds;
  return seconds * std::max(*measured_.workers, 1U) /
         std::max(*setting.workers, 1U);
}

double StepModel::warm_supply(const WhatIfSetting& setting) const {
  return std::max(workers_supply(setting, unhindered_supply_),
                  cores_supply(setting));
}

double StepModel::overlap_at(double cached) const {
  // By the time that each contributes, so that a warm supply of next to nothing
  // does not have a say.
  const double warm = cached * measured_.warm_supply;
  const double cold = (1 - cached) * measured_.cold_supply;
  if (warm + cold == 0) return cold_overlap_;
  return (warm * warm_overlap_ + cold * cold_overlap_) / (warm + cold);
}

double StepModel::cold_supply(const WhatIfSetting& setting, double warm) const {
  return std::max(made_supply(setting, warm),
                  (1 - setting.cached) * setting.least_fetch);
}

double StepModel::made_supply(const WhatIfSetting& setting, double warm) const {
  const double latency = measured_.latency_share.value_or(0);
  const double slower =
      measured_.latency_share
          ? latency * setting.latency + (1 - latency) / setting.bandwidth
          : std::max(setting.latency, 1 / setting.bandwidth);
  const double missed = 1 - setting.cached;
  if (!measured_.has_warm) return measured_.cold_supply * slower;
  if (measured_.is_pipelined) {
    return std::max(warm, missed * slower * measured_.cold_supply);
  }
  if (measured_.workers) {
    const double fetch = measured_.cold_supply - unhindered_supply_;
    return std::max(warm, workers_supply(setting, unhindered_supply_ +
                                                      missed * slower * fetch));
  }
  return warm +
         missed * slower * (measured_.cold_supply - measured_.warm_supply);
}

double StepModel::stall_at(const WhatIfSetting& setting,
                           double training) const {
  const double cold = cold_supply(setting, warm_supply(setting));
  const bool is_ahead =
      setting.loads_ahead || (setting.workers && *setting.workers > 0 &&
                              measured_.workers == std::uint32_t{0});
  return stall(training, cold, is_ahead ? 1 : overlap_at(setting.cached));
}

PredictedStep StepModel::predict(const WhatIfSetting& setting) const {
  PredictedStep step{
      .compute = measured_.compute / setting.accelerator,
      .interconnect = setting.interconnect.value_or(
          ring(measured_.interconnect, measured_.devices, setting.devices)),
      .network = setting.network.value_or(
          ring(measured_.network, measured_.nodes, setting.nodes))};
  const double training = step.seconds();
  WhatIfSetting end = setting;
  end.cached = 0;
  const double most = stall_at(end, training);
  if (!measured_.has_warm) {
    step.fetch = most;
    return step;
  }
  end.cached = 1;
  const double least = std::min(stall_at(end, training), most);
  const double all = std::clamp(stall_at(setting, training), least, most);
  step.preparation = least;
  step.fetch = all - least;
  return step;
}

double StepModel::speedup(const WhatIfSetting& setting) const {
  const double ranks = static_cast<double>(setting.devices) * setting.nodes /
                       measured_.devices / measured_.nodes;
  return ranks * predict(measured_setting()).seconds() /
         predict(setting).seconds();
}

}  // namespace leat
