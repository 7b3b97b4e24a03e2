// Explains what limits a loader's speed, and what one more of each resource
// would gain.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "leat/tune/observation.h"
#include "leat/tune/stage_rates.h"

namespace leat {

enum class Bottleneck : std::uint8_t {
  kTraining,   ///< The loader waits for training: nothing to gain.
  kThreads,    ///< All threads are busy.
  kCores,      ///< All cores are busy.
  kRequests,   ///< All permitted requests are in flight.
  kBandwidth,  ///< Reads use all that the node's agent allows.
  kThrottled,  ///< The store throttles.
  kStore,      ///< More requests were tried, without gain.
  kMemory,     ///< memory= is full.
  kLookahead,  ///< Nothing is full: too little is requested in time.
};

/// "training", "threads", …: as settings and reports name it.
std::string_view to_string(Bottleneck bottleneck);

/// The settings that a speed depends on, real or assumed.
struct Means {
  double threads = 1;
  double in_flight = 1;
  double cores = 1;
  /// The rate that the store is known not to exceed, in samples a second.
  std::optional<double> store_rate;
  /// A factor on the reads needed now: 0.5 if a cache took half of them.
  double reads = 1;
};

/// The model's samples a second: the least of training, threads × rate per
/// thread, cores × rate per core, and requests / latency. None: no bound has
/// been observed.
std::optional<double> speed_with(const StageRates& rates, const Means& means);

/// The bottleneck that was observed. `knows_store`: more requests were tried
/// without gain.
Bottleneck bottleneck_of(const StageRates& rates, const Observation& now,
                         bool knows_store);

struct StageLine {
  std::string name;  ///< "fetch", "decode", "training".
  /// The samples a second that its resources permit.
  std::optional<double> samples_per_second;
  double used = 0;  ///< The average number of `units` in use.
  double units = 0;
  // The measured values.
  double visits = 0;   ///< Visits for each sample: the visit ratio.
  double seconds = 0;  ///< Seconds for each visit.
  /// The part of `seconds` on a core. None: the stage uses none of our cores.
  std::optional<double> cpu_seconds;
  std::optional<double> bytes;  ///< Bytes read in each visit.
};

struct NextUnit {
  std::string name;  ///< "core", "connection", "GiB of cache".
  /// The gain in samples a second, as a ratio less one; none: unknown.
  std::optional<double> gain;
};

struct Explanation {
  Bottleneck bottleneck = Bottleneck::kTraining;
  std::string reason;  ///< A clause with the underlying figures.
  double samples_per_second = 0;
  double wait_share = 0;
  /// The loader's possible gain if training took no time, by the model and its
  /// present resources, as a ratio less one. None: unknown.
  std::optional<double> headroom;
  std::vector<StageLine> stages;
  std::vector<NextUnit> next;
};

Explanation explain(const StageRates& rates, const Observation& now,
                    std::optional<double> store_rate);

/// The output of `leat explain`: lines, each with its end.
std::string to_text(const Explanation& explanation);
std::string to_json(const Explanation& explanation);

}  // namespace leat
