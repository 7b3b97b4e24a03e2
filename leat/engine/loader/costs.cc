#include "leat/engine/loader/costs.h"

#include <utility>

namespace leat {

Result<std::unique_ptr<LoaderCosts>> LoaderCosts::open(
    const Env& env, const std::optional<std::string>& provider,
    std::uint32_t local_ranks, Metrics& metrics) {
  LEAT_TRY(Pricing pricing, read_pricing(env, provider));
  return std::unique_ptr<LoaderCosts>(
      new LoaderCosts(std::move(pricing), local_ranks, metrics));
}

LoaderCosts::LoaderCosts(Pricing pricing, std::uint32_t local_ranks,
                         Metrics& metrics)
    : pricing_(std::move(pricing)),
      local_ranks_(local_ranks),
      metrics_(metrics) {}

void LoaderCosts::price_metrics() {
  leat::price_metrics(metrics_, local_ranks_, pricing_, energy_.now());
}

std::string LoaderCosts::ledger() {
  LedgerCounts counts = counts_of(metrics_, local_ranks_);
  const EnergyCount::Joules joules = energy_.now();
  counts.processor_joules = joules.processors;
  counts.accelerator_joules = joules.accelerators;
  time_.fill(counts);
  return to_json(counts, pricing_);
}

void LoaderCosts::add_to(LoaderTotals& totals) {
  const LedgerCounts counts = counts_of(metrics_, local_ranks_);
  totals.gets = static_cast<std::uint64_t>(counts.usage.gets);
  totals.lists = static_cast<std::uint64_t>(counts.usage.lists);
  totals.read_bytes = static_cast<std::uint64_t>(counts.usage.get_bytes);
  totals.dollars = dollars_of(counts, pricing_);
}

}  // namespace leat
