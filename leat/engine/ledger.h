// The requests of a run and their cost: docs/reference/ledger.md.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "leat/base/env.h"
#include "leat/base/result.h"
#include "leat/engine/carbon.h"
#include "leat/metrics/metrics.h"
#include "leat/plan/price.h"
#include "leat/runtime/energy_count.h"

namespace leat {

/// Watts, for energy that no meter tells.
struct PowerModel {
  /// A core that is busy takes these.
  double processor_core_watts = 4;
  /// This machine's memory takes these all the time. 0: left out.
  double memory_watts = 0;
};

/// The provider and prices that usage is counted with.
struct Pricing {
  std::string provider;  ///< Empty: unknown, and requests have no price.
  Prices prices = {};
  Billing billing = {};
  Carbon carbon = {};  ///< No region: CO2 is unknown.
  PowerModel power = {};
};

/// The provider of an http(s) URL, found by its host: "s3" for AWS, "gcs" for
/// Google; empty for others, whose prices are unknown here.
std::string provider_at(std::string_view url);

/// Reads the environment: LEAT_PROVIDER (default: `provider`, the store's;
/// empty for files, which cost nothing in any case), LEAT_PRICES, a file that
/// replaces the shipped prices, LEAT_NAT, 1 behind a NAT gateway,
/// LEAT_NODE_PER_HOUR, in dollars, LEAT_GRID, where the machine is,
/// LEAT_CARBON, a file that replaces the shipped carbon.toml, and
/// LEAT_CORE_WATTS and LEAT_MEMORY_WATTS, of the PowerModel.
///
/// Errors:
///   kInvalidArgument  a variable that says nothing of the kind
///   kNotFound, kUnavailable  as read_text()
Result<Pricing> read_pricing(const Env& env,
                             const std::optional<std::string>& provider);

struct LedgerCounts {
  Usage usage = {};
  /// Seconds for which all accelerators together stood idle for want of data.
  double stalled_accelerator_seconds = 0;
  std::uint32_t accelerators_a_node = 1;
  /// Joules of the machine's processors and accelerators, of all programs.
  std::optional<double> processor_joules = {};
  std::optional<double> accelerator_joules = {};
  /// Seconds since 1970 at which counting began, the seconds since then, and
  /// those of a core that this process used in them. None: not told.
  std::optional<double> began = {};
  std::optional<double> seconds = {};
  std::optional<double> processor_seconds = {};
};

/// The energy of a run, of the parts that are known.
struct LedgerEnergy {
  double kwh = 0;
  bool are_processors_measured = false;
  bool is_known = false;  ///< If nothing is, kwh is 0 and means nothing.
};

/// Measured where the counts have joules of processors; otherwise modelled from
/// this process' seconds of a core, and from the machine's memory if its power
/// is given. RAPL's packages count no memory, so that is added to both.
LedgerEnergy energy_of(const LedgerCounts& counts, const PowerModel& power);

/// Begins to count the time of a run.
///
/// Threads: any.
class RunTime {
 public:
  RunTime();
  void fill(LedgerCounts& counts) const;

 private:
  const double began_;
  const double steady_;
  const double processor_seconds_;
};

/// The counts of one rank of a loader, from its metrics; without energy.
LedgerCounts counts_of(const Metrics& metrics,
                       std::uint32_t accelerators_a_node);

struct LedgerDollars {
  std::optional<double> requests;  ///< None: the provider is unknown.
  std::optional<double> transfer;
  double stalled = 0;  ///< 0 if the cost of a node is unknown.
};

LedgerDollars dollars_of(const LedgerCounts& counts, const Pricing& pricing);

/// A JSON object. Unknown values are left out.
std::string to_json(const LedgerCounts& counts, const Pricing& pricing);

/// Updates the metrics that follow from others and from `energy`.
void price_metrics(Metrics& metrics, std::uint32_t accelerators_a_node,
                   const Pricing& pricing, const EnergyCount::Joules& energy);

}  // namespace leat
