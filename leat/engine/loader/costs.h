// The costs of a loader's requests, waits and energy.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "leat/base/env.h"
#include "leat/base/result.h"
#include "leat/engine/ledger.h"
#include "leat/engine/loader_totals.h"
#include "leat/metrics/metrics.h"

namespace leat {

/// Prices what the metrics of a rank count.
///
/// Threads: any. Lifetime: `metrics` must outlive
/// it.
class LoaderCosts {
 public:
  /// Errors: as read_pricing()
  static Result<std::unique_ptr<LoaderCosts>> open(
      const Env& env, const std::optional<std::string>& provider,
      std::uint32_t local_ranks, Metrics& metrics);

  /// Updates prices and energy in the metrics.
  void price_metrics();
  /// As to_json(LedgerCounts).
  std::string ledger();
  /// Fills in requests and dollars.
  void add_to(LoaderTotals& totals);
  /// Reads the meters if that was long ago, since they overflow.
  void keep_energy(TimePoint now) { energy_.keep(now); }

 private:
  LoaderCosts(Pricing pricing, std::uint32_t local_ranks, Metrics& metrics);

  const Pricing pricing_;
  const std::uint32_t local_ranks_;
  Metrics& metrics_;
  EnergyCount energy_;
  const RunTime time_;
};

}  // namespace leat
