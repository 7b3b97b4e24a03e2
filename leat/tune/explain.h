// Explains the limit of a loader's speed, and what one more of anything would
// buy.
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
  kCores,      ///< All cores are.
  kRequests,   ///< All requests that may be are in flight.
  kBandwidth,  ///< All bytes that the agent of its node allows are read.
  kStore,      ///< More requests were tried, and brought no more.
  kMemory,     ///< memory= is full.
  kLookahead,  ///< Nothing is full: not enough is asked for in time.
};

/// "training", "threads", …: as settings and reports name it.
std::string_view to_string(Bottleneck bottleneck);

/// The settings that a speed depends on, or that it would have.
struct Means {
  double threads = 1;
  double in_flight = 1;
  double cores = 1;
  /// Samples a second that the store is known not to exceed.
  std::optional<double> store_rate;
  /// Times the reads that are needed now: 0.5 if a cache took half of them.
  double reads = 1;
};

/// Samples a second that the model gives: the least of training, threads ×
/// rate per thread, cores × rate per core, and requests / latency. None: it
/// has seen nothing that bounds it.
std::optional<double> speed_with(const StageRates& rates, const Means& means);

/// The bottleneck that was seen. `knows_store`: more requests were tried and
/// brought nothing.
Bottleneck bottleneck_of(const StageRates& rates, const Observation& now,
                         bool knows_store);

struct StageLine {
  std::string name;  ///< "fetch", "decode", "training".
  /// Samples a second that it could do with its resources.
  std::optional<double> samples_per_second;
  double used = 0;  ///< The average number of `units` in use.
  double units = 0;
  // The measured values.
  double visits = 0;   ///< Visits of a sample: the visit ratio.
  double seconds = 0;  ///< Seconds of a visit.
  /// The part of it on a core. None: the stage needs none of our cores.
  std::optional<double> cpu_seconds;
  std::optional<double> bytes;  ///< Read by a visit.
};

struct NextUnit {
  std::string name;  ///< "core", "connection", "GiB of cache".
  /// More samples a second, as a ratio less one; none: not known.
  std::optional<double> gain;
};

struct Explanation {
  Bottleneck bottleneck = Bottleneck::kTraining;
  std::string reason;  ///< A clause with the figures behind it.
  double samples_per_second = 0;
  double wait_share = 0;
  /// The loader's possible gain if training took no time, by the model and its
  /// present resources, as a ratio less one. None: not known.
  std::optional<double> headroom;
  std::vector<StageLine> stages;
  std::vector<NextUnit> next;
};

Explanation explain(const StageRates& rates, const Observation& now,
                    std::optional<double> store_rate);

/// As `leat explain` prints it: lines, each with its end.
std::string to_text(const Explanation& explanation);
std::string to_json(const Explanation& explanation);

}  // namespace leat
