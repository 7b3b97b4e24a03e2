// Finds the changes that would make a step shorter, and the one with the least
// effort.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "leat/base/result.h"
#include "leat/profile/step_model.h"
#include "leat/profile/step_parts.h"

namespace leat {

/// Something about a training that could be otherwise.
enum class Knob : std::uint8_t {
  kLoadAhead,    ///< 1: batches are made while training computes.
  kCached,       ///< Share of bytes that come from memory: 0 to 1.
  kWorkers,      ///< Processes that make a rank's batches: how many.
  kCores,        ///< A node's cores, as a multiple.
  kBandwidth,    ///< From the store, as a multiple.
  kLatency,      ///< The store's latency, as a multiple: 0.5 is half.
  kAccelerator,  ///< Its speed, as a multiple.
  kDevices,      ///< The number of a node's devices.
  kNodes,        ///< How many.
  kCount,
};

/// "load_ahead", "cached", "cores", …: the keys of reports.
std::string_view to_string(Knob knob);

/// Turns the knob of that name to `value`; the others stay.
///
/// Errors: kInvalidArgument  no such knob, its measurement is missing, or the
///           value is not possible
Result<void> turn(WhatIfSetting& setting, const MeasuredStep& measured,
                  std::string_view knob, double value);

struct CurvePoint {
  double value = 0;  ///< As Knob says.
  PredictedStep step;
  double speedup = 1;  ///< Samples a second, against what was measured.
};

/// One knob turned, all others as measured.
struct Curve {
  Knob knob = Knob::kCached;
  std::vector<CurvePoint> points;  ///< By rising value.
  /// The missing measurement, if there are no points. Else empty.
  std::string why_not;
};

/// A curve for every knob but kLoadAhead, in the order of Knob.
std::vector<Curve> what_if_curves(const StepModel& model);

/// One way to remove a bottleneck.
struct Change {
  Knob knob = Knob::kCached;
  double value = 0;         ///< As Knob says.
  double step_seconds = 0;  ///< With this change and those taken before it.
};

/// The largest stall, and what removes it.
struct Removal {
  StepPart part = StepPart::kFetch;
  double seconds = 0;  ///< The time of a step before the change.
  /// The least change first, which the next removal builds on; empty: none of
  /// the knobs that were measured removes it.
  std::vector<Change> changes;
};

/// The bottlenecks of a step, each with the smallest changes that remove it.
/// The largest stall comes first, then the largest that remains after its
/// change. Stalls that no change removes are passed over. The list ends when no
/// other stall takes more than 2 % of the step.
///
/// A stall is removed when it is under 1 % of the step and at least half of its
/// time is saved, rather than spent waiting for something else. Changes are
/// ranked by the factor by which they shrink the work in its way: caching three
/// quarters is as large as four times the bandwidth, or as four workers for
/// one. Loading ahead costs nothing and goes first, if the loader did not do
/// so. No change is larger than a factor of 64.
std::vector<Removal> removals(const StepModel& model);

}  // namespace leat
