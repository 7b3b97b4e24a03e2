#include "leat/profile/recommend.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "leat/base/errors.h"

namespace leat {
namespace {

constexpr double kSecondsOfHour = 3600;
/// The share of a machine's memory that a cache may take beside the training.
constexpr double kMemoryForCache = 0.5;

double ratio(double a, double b) { return a > 0 && b > 0 ? a / b : 1; }

/// Judges one training on machine after machine.
class Judge {
 public:
  Judge(const WholeTraining& training, const StepModel& model,
        const Prices& prices, const Billing& billing)
      : training_(training),
        model_(model),
        prices_(prices),
        billing_(billing) {}

  Offer offer(const Machine& machine, std::uint32_t count) const {
    Offer offer{.count = count, .why_not = why_not(machine, count)};
    if (!offer.why_not.empty()) return offer;
    const MeasuredStep& was = model_.measured();
    const double ranks = static_cast<double>(machine.accelerators) * count;
    const double batches =
        training_.steps_an_epoch * was.devices * was.nodes;  // An epoch's.
    const double steps = batches / ranks;
    const double later = cached_share(machine, batches);
    const double correction = measured_over_predicted(machine);
    Usage usage;
    double seconds = 0;
    const auto add = [&](double cached, double epochs) {
      offer.step = model_.predict(setting(machine, count, cached));
      seconds += epochs * steps * offer.step.seconds() * correction;
      usage.gets += epochs * batches * (1 - cached) * training_.gets_a_batch;
      usage.get_bytes +=
          epochs * batches * (1 - cached) * training_.bytes_a_batch;
    };
    // Nothing is cached before it was read once.
    add(0, std::min(training_.epochs, 1.0));
    if (training_.epochs > 1) add(later, training_.epochs - 1);
    for (double* part :
         {&offer.step.compute, &offer.step.interconnect, &offer.step.network,
          &offer.step.preparation, &offer.step.fetch}) {
      *part *= correction;
    }
    offer.hours = seconds / kSecondsOfHour;
    usage.node_hours = offer.hours * count;
    Billing billing = billing_;
    billing.node_per_hour = machine.dollars_per_hour;
    offer.cost = cost_of(usage, prices_, billing);
    if (!std::isfinite(offer.hours) || !std::isfinite(offer.cost.total())) {
      offer.why_not =
          "its time or price is past any number: look at its speed, cores and "
          "prices in the catalog";
    }
    return offer;
  }

 private:
  WhatIfSetting setting(const Machine& machine, std::uint32_t count,
                        double cached) const {
    const MeasuredStep& was = model_.measured();
    const Machine& old = training_.measured_on;
    const double share =
        ratio(machine.network.bytes_per_second, old.network.bytes_per_second) *
        was.devices / machine.accelerators;
    WhatIfSetting setting{.cached = cached,
                          .cores = ratio(machine.cores, was.cores),
                          .bandwidth = share,
                          .least_fetch = least_fetch(machine),
                          .accelerator = ratio(machine.speed, old.speed),
                          .devices = machine.accelerators,
                          .nodes = count};
    if (training_.gradient_bytes > 0) {
      setting.interconnect =
          exchange(was.interconnect, was.devices, way(old, old.interconnect),
                   machine.accelerators, way(machine, machine.interconnect));
      setting.network = exchange(was.network, was.nodes, way(old, old.network),
                                 count, way(machine, machine.network));
    }
    return setting;
  }

  /// The least time to bring the bytes of a step of all accelerators of a
  /// machine over its network; shorter if the machine that was measured did
  /// better than its own network.
  double least_fetch(const Machine& machine) const {
    const MeasuredStep& was = model_.measured();
    const auto full = [this](std::uint32_t accelerators, const Link& network) {
      return network.bytes_per_second > 0
                 ? accelerators * training_.bytes_a_batch /
                       network.bytes_per_second
                 : 0;
    };
    const double before = full(was.devices, training_.measured_on.network);
    const double after = full(machine.accelerators, machine.network);
    return before > was.cold_supply ? after * was.cold_supply / before : after;
  }

  /// A link, and the number of buckets that torch's library on it has under way
  /// at once: gloo's two threads, on machines with processors only, have one
  /// each; NCCL reduces one after the other.
  struct Way {
    const Link& link;
    double at_once;
  };
  static Way way(const Machine& machine, const Link& link) {
    return {link, machine.accelerator.empty() ? 2.0 : 1.0};
  }

  double ring(std::uint32_t members, const Way& way) const {
    return ring_seconds(training_.gradient_buckets, training_.gradient_bytes,
                        members, way.link, way.at_once);
  }

  /// A ring's time on that way, times the share that was exposed on `old`. None
  /// where a measured one cannot be compared, since `old` is not known.
  std::optional<double> exchange(double measured,
                                 std::uint32_t measured_members, const Way& old,
                                 std::uint32_t members, const Way& on) const {
    if (measured_members < 2) return ring(members, on);
    const double whole = ring(measured_members, old);
    if (whole <= 0) return std::nullopt;
    return measured / whole * ring(members, on);
  }

  std::string why_not(const Machine& machine, std::uint32_t count) const {
    const MeasuredStep& was = model_.measured();
    if (!machine.measured_step_seconds) {
      if (!was.has_supply && !is_as_measured(machine, count)) {
        return "the time to make a batch while nobody trains was not measured: "
               "profile with lower --steps, or with more batches an epoch";
      }
      if (!was.preparation_cpu &&
          machine.cores / machine.accelerators < was.cores / was.devices) {
        return "it has fewer cores for an accelerator than the machine that "
               "was measured, and the CPU time of preparing a batch is not "
               "known: profile where preparation is told from fetch, or give "
               "its measured_step";
      }
    }
    if (training_.gradient_bytes > 0) return "";
    if ((machine.accelerators > 1 && was.devices == 1) ||
        (count > 1 && was.nodes == 1)) {
      return "what its devices would tell each other is not known: profile "
             "with --nproc-per-node 2 or --node, or give --gradient-bytes";
    }
    return "";
  }

  /// Whether nothing differs from what was profiled.
  bool is_as_measured(const Machine& machine, std::uint32_t count) const {
    const MeasuredStep& was = model_.measured();
    return machine.name == training_.measured_on.name && count == was.nodes &&
           machine.accelerators == was.devices && machine.cores == was.cores;
  }

  double cached_share(const Machine& machine, double batches) const {
    const double dataset = batches * training_.bytes_a_batch;
    const MeasuredStep& was = model_.measured();
    if (!training_.has_cache || !was.has_warm || !was.has_supply ||
        dataset <= 0) {
      return 0;
    }
    return std::min(
        (kMemoryForCache * machine.memory_bytes + machine.disk_bytes) / dataset,
        1.0);
  }

  double measured_over_predicted(const Machine& machine) const {
    if (!machine.measured_step_seconds) return 1;
    return *machine.measured_step_seconds /
           model_.predict(setting(machine, 1, 0)).seconds();
  }

  const WholeTraining& training_;
  const StepModel& model_;
  const Prices& prices_;
  const Billing& billing_;
};

bool is_better(const Offer& a, const Offer& b) {
  return a.hours <= b.hours && a.cost.total() <= b.cost.total() &&
         (a.hours < b.hours || a.cost.total() < b.cost.total());
}

}  // namespace

double ring_seconds(double buckets, double bytes, std::uint32_t members,
                    const Link& link, double at_once) {
  if (members < 2) return 0;
  const double hops = 2.0 * (members - 1);
  const double traffic =
      link.bytes_per_second > 0 ? bytes / link.bytes_per_second : 0;
  const double carried = hops / members * traffic;
  return std::max(carried,
                  carried / at_once + hops * buckets * link.latency_seconds);
}

Result<std::vector<Offer>> judge(const WholeTraining& training,
                                 std::span<const Machine> machines,
                                 const Prices& prices, const Billing& billing) {
  LEAT_TRY(const StepModel model, StepModel::of(training.step));
  if (!(training.steps_an_epoch > 0) || !(training.epochs > 0)) {
    return invalid("a training without steps");
  }
  const Judge judge(training, model, prices, billing);
  std::vector<Offer> offers;
  for (std::size_t i = 0; i < machines.size(); ++i) {
    for (std::uint32_t count = 1; count <= machines[i].most; count *= 2) {
      offers.push_back(judge.offer(machines[i], count));
      offers.back().machine = i;
    }
  }
  for (Offer& offer : offers) {
    offer.is_front = offer.why_not.empty() &&
                     std::ranges::none_of(offers, [&](const Offer& o) {
                       return o.why_not.empty() && is_better(o, offer);
                     });
  }
  return offers;
}

const Offer* choose(std::span<const Offer> offers, const RentLimits& limits) {
  const Offer* best = nullptr;
  for (const Offer& offer : offers) {
    if (!offer.why_not.empty() ||
        offer.hours > limits.hours.value_or(INFINITY) ||
        offer.cost.total() > limits.dollars.value_or(INFINITY)) {
      continue;
    }
    const auto rank = [&](const Offer& o) {
      return limits.dollars ? std::pair(o.hours, o.cost.total())
                            : std::pair(o.cost.total(), o.hours);
    };
    if (best == nullptr || rank(offer) < rank(*best)) best = &offer;
  }
  return best;
}

}  // namespace leat
