// Recommends a machine for a training that was profiled: time and cost on each
// machine of a list. The model is our own.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "leat/base/result.h"
#include "leat/plan/price.h"
#include "leat/profile/step_model.h"

namespace leat {

/// A way between members that exchange gradients. 0: no limit, at once.
struct Link {
  double latency_seconds = 0;
  double bytes_per_second = 0;
};

/// A machine that can be rented, and its parts.
struct Machine {
  std::string name;
  std::string accelerator;  ///< As torch names it; empty: it trains on CPUs.
  std::uint32_t accelerators = 1;
  double speed = 1;  ///< Speed of one accelerator; any unit, the same for all.
  double cores = 1;
  double memory_bytes = 0;
  double disk_bytes = 0;
  Link interconnect;  ///< Between its accelerators.
  Link network;       ///< To other machines; its bandwidth is the store's too.
  double dollars_per_hour = 0;
  std::uint32_t most = 1;  ///< The most machines to rent together.
  /// The measured time of a step on one of them.
  std::optional<double> measured_step_seconds;
};

/// The training that is to be run as a whole.
struct WholeTraining {
  MeasuredStep step;
  /// The machine on which it was measured.
  Machine measured_on;
  double steps_an_epoch = 0;  ///< With the ranks that were measured.
  double epochs = 1;
  /// The gradients that ranks reduce in a step; 0: not known.
  double gradient_bytes = 0;
  double gradient_buckets = 0;
  /// For a rank's batch, with nothing cached.
  double gets_a_batch = 0;
  double bytes_a_batch = 0;
  /// Later epochs read from what fits into half the memory and the disk.
  bool has_cache = false;
};

/// An offer to rent `count` of one machine, and what the
/// training takes on them.
struct Offer {
  std::size_t machine = 0;  ///< The index of the machine.
  std::uint32_t count = 1;
  PredictedStep step;     ///< A step of the last epoch.
  double hours = 0;       ///< For the whole training.
  RunCost cost;           ///< Likewise.
  bool is_front = false;  ///< No other is both faster and cheaper.
  /// Why the machine cannot be judged; all else is then 0.
  std::string why_not;
};

/// The time for a ring of `members` to reduce gradients: 2 (n - 1) messages a
/// bucket, and each byte 2 (n - 1) / n times (Patarasuk and Yuan, 2009). If
/// `at_once` buckets are under way together, the link carries the bytes of some
/// while others wait for their messages. A bucket then takes its bytes, or one
/// `at_once`th of them and its messages, whichever is longer; `link`'s latency
/// is the time that a message adds in that case.
///
/// REQUIRES: at_once >= 1
double ring_seconds(double buckets, double bytes, std::uint32_t members,
                    const Link& link, double at_once = 1);

/// Judges 1, 2, 4, … of each machine, up to its `most`. In the order of
/// `machines`, then by count.
///
/// Each rank keeps its batch: twice the ranks make half the steps, of twice the
/// batch. Compute scales with the speed of the accelerator, preparation with
/// the cores that each has, the bandwidth of the store with its part of the
/// network; a batch's bytes take at least their time over that. Communication
/// is that of a ring over the links given, times the share of it that was
/// exposed in the measurement (1 if it was not measured); without gradients,
/// the measured time grows as a ring's traffic does. A measured step replaces
/// the predicted one of one machine, and scales those of several.
///
/// Errors:
///   kInvalidArgument  as StepModel::of; no steps
Result<std::vector<Offer>> judge(const WholeTraining& training,
                                 std::span<const Machine> machines,
                                 const Prices& prices, const Billing& billing);

struct RentLimits {
  std::optional<double> hours;
  std::optional<double> dollars;
};

/// The cheapest within `hours`, or the fastest within `dollars`; the cheapest
/// of all without limits. None: null.
const Offer* choose(std::span<const Offer> offers, const RentLimits& limits);

}  // namespace leat
