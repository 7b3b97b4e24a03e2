#include "leat/engine/ledger.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "leat/base/errors.h"
#include "leat/base/text.h"
#include "leat/engine/prices.h"
#include "leat/engine/read_text.h"

namespace leat {
namespace {

constexpr std::uint64_t kMostFileBytes = 1 << 20;
/// Dollars. A machine never costs more, so a higher figure is a mistake.
constexpr double kMostNodePerHour = 1e6;
constexpr double kMostWatts = 1e6;
constexpr double kDay = 24 * 3600;  // Seconds.
constexpr double kJoulesOfKwh = 3.6e6;

/// `otherwise` if it is not set.
Result<double> read_amount(const Env& env, const char* name, double most,
                           double otherwise, const char* meaning) {
  const auto told = value_of(env, name);
  if (!told) return otherwise;
  const auto amount = number_from<double>(*told);
  if (amount && *amount >= 0 && *amount <= most) return *amount;
  return invalid(std::string(name) + "=" + *told + "; it is " + meaning);
}

Result<Carbon> read_carbon(const Env& env) {
  const auto grid = value_of(env, "LEAT_GRID");
  if (!grid) return Carbon{};
  auto carbon = [&]() -> Result<Carbon> {
    const auto file = value_of(env, "LEAT_CARBON");
    if (!file) return carbon_of(*grid);
    auto text = read_text(*file, kMostFileBytes);
    if (!text) return std::move(text).error().while_doing("LEAT_CARBON");
    return carbon_of(*grid, *text, *file);
  }();
  if (!carbon) return std::move(carbon).error().while_doing("LEAT_GRID");
  return carbon;
}

Result<PowerModel> read_power(const Env& env) {
  PowerModel power;
  LEAT_TRY(power.processor_core_watts,
           read_amount(env, "LEAT_CORE_WATTS", kMostWatts,
                       power.processor_core_watts,
                       "the watts of a busy core, such as 4"));
  LEAT_TRY(power.memory_watts,
           read_amount(env, "LEAT_MEMORY_WATTS", kMostWatts, 0,
                       "the watts of the machine's memory, such as 20"));
  return power;
}

double processor_seconds_now() {
  rusage use{};
  ::getrusage(RUSAGE_SELF, &use);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) +
           static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(use.ru_utime) + seconds(use.ru_stime);
}

template <class Time>
double since_epoch(const Time& time) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

Result<bool> read_nat(const Env& env) {
  const std::string told = value_of(env, "LEAT_NAT").value_or("0");
  if (told == "1" || told == "true") return true;
  if (told == "0" || told == "false") return false;
  return invalid("LEAT_NAT=" + told +
                 "; it is 1 where reads pass a NAT gateway, else 0");
}

Result<Prices> read_prices(const Env& env, const std::string& provider) {
  const auto file = value_of(env, "LEAT_PRICES");
  if (!file) return prices_of(provider);
  auto text = read_text(*file, kMostFileBytes);
  if (!text) return std::move(text).error().while_doing("LEAT_PRICES");
  return prices_of(provider, *text, *file);
}

std::string host_of(std::string_view url) {
  const std::size_t scheme = url.find("://");
  if (scheme != std::string_view::npos) url.remove_prefix(scheme + 3);
  url = url.substr(0, url.find_first_of("/?#"));
  if (const auto at = url.rfind('@'); at != std::string_view::npos) {
    url.remove_prefix(at + 1);
  }
  std::string host(url.substr(0, url.find(':')));
  std::ranges::transform(host, host.begin(), [](char c) {
    return 'A' <= c && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return host;
}

/// Whether `host` is `domain` or lies in it.
bool is_in(std::string_view host, std::string_view domain) {
  if (!host.ends_with(domain)) return false;
  host.remove_suffix(domain.size());
  return host.empty() || host.ends_with('.');
}

std::int64_t scaled(const std::optional<double>& amount, double by) {
  return amount ? std::llround(by * *amount) : Metrics::kUnknown;
}

std::int64_t as_nano(const std::optional<double>& amount) {
  return scaled(amount, 1e9);
}

std::int64_t as_milli(const std::optional<double>& amount) {
  return scaled(amount, 1e3);
}

}  // namespace

std::string provider_at(std::string_view url) {
  const std::string host = host_of(url);
  if (is_in(host, "amazonaws.com") || is_in(host, "amazonaws.com.cn")) {
    return "s3";
  }
  return is_in(host, "storage.googleapis.com") ? "gcs" : "";
}

Result<Pricing> read_pricing(const Env& env,
                             const std::optional<std::string>& provider) {
  Pricing pricing;
  LEAT_TRY(pricing.billing.node_per_hour,
           read_amount(env, "LEAT_NODE_PER_HOUR", kMostNodePerHour, 0,
                       "what a node costs in an hour, in dollars, such as "
                       "12.24"));
  LEAT_TRY(pricing.carbon, read_carbon(env));
  LEAT_TRY(pricing.power, read_power(env));
  LEAT_TRY(pricing.billing.is_behind_nat, read_nat(env));
  const auto told = value_of(env, "LEAT_PROVIDER");
  if (told) {  // Read for files too, so that errors show early.
    auto prices = read_prices(env, *told);
    if (!prices) return std::move(prices).error().while_doing("LEAT_PROVIDER");
    pricing.prices = *std::move(prices);
  }
  if (!provider) return pricing;
  pricing.provider = told.value_or(*provider);
  if (!told && !pricing.provider.empty()) {
    LEAT_TRY(pricing.prices, read_prices(env, pricing.provider));
  }
  return pricing;
}

LedgerCounts counts_of(const Metrics& metrics,
                       std::uint32_t accelerators_a_node) {
  const auto count = [&](Metric metric) {
    return static_cast<double>(metrics.value(metric));
  };
  return {.usage = {.gets = count(Metric::kStoreReads),
                    .lists = count(Metric::kStoreLists),
                    .get_bytes = count(Metric::kStoreReadBytes)},
          .stalled_accelerator_seconds =
              count(Metric::kPipelineStalledNanoseconds) / 1e9,
          .accelerators_a_node = accelerators_a_node};
}

LedgerEnergy energy_of(const LedgerCounts& counts, const PowerModel& power) {
  LedgerEnergy energy;
  const auto add = [&](const std::optional<double>& joules) {
    energy.kwh += joules.value_or(0) / kJoulesOfKwh;
    energy.is_known = energy.is_known || joules.has_value();
  };
  energy.are_processors_measured = counts.processor_joules.has_value();
  if (energy.are_processors_measured) {
    add(counts.processor_joules);
  } else if (counts.processor_seconds) {
    add(*counts.processor_seconds * power.processor_core_watts);
  }
  if (counts.seconds && power.memory_watts > 0) {
    add(*counts.seconds * power.memory_watts);
  }
  add(counts.accelerator_joules);
  return energy;
}

RunTime::RunTime()
    : began_(since_epoch(std::chrono::system_clock::now())),
      steady_(since_epoch(std::chrono::steady_clock::now())),
      processor_seconds_(processor_seconds_now()) {}

void RunTime::fill(LedgerCounts& counts) const {
  counts.began = began_;
  counts.seconds = since_epoch(std::chrono::steady_clock::now()) - steady_;
  counts.processor_seconds = processor_seconds_now() - processor_seconds_;
}

LedgerDollars dollars_of(const LedgerCounts& counts, const Pricing& pricing) {
  const RunCost cost = cost_of(counts.usage, pricing.prices, pricing.billing);
  // A node stands still for as long as its accelerators do, taken together.
  const Usage stalled{.node_hours = counts.stalled_accelerator_seconds / 3600 /
                                    counts.accelerators_a_node};
  LedgerDollars dollars{
      .requests = {},
      .transfer = {},
      .stalled = cost_of(stalled, pricing.prices, pricing.billing).hours};
  if (pricing.provider.empty()) return dollars;
  dollars.requests = cost.gets + cost.lists;
  dollars.transfer = cost.nat;
  return dollars;
}

std::string to_json(const LedgerCounts& counts, const Pricing& pricing) {
  const LedgerDollars dollars = dollars_of(counts, pricing);
  nlohmann::ordered_json told;
  const auto tell = [&](const char* name, const std::optional<double>& value) {
    if (value) told[name] = *value;
  };
  if (!pricing.provider.empty()) told["provider"] = pricing.provider;
  tell("gets", counts.usage.gets);
  tell("lists", counts.usage.lists);
  tell("bytes", counts.usage.get_bytes);
  tell("stalled_accelerator_seconds", counts.stalled_accelerator_seconds);
  tell("request_dollars", dollars.requests);
  tell("transfer_dollars", dollars.transfer);
  tell("stalled_dollars", dollars.stalled);
  tell("processor_joules", counts.processor_joules);
  tell("accelerator_joules", counts.accelerator_joules);
  tell("began", counts.began);
  tell("seconds", counts.seconds);
  tell("processor_seconds", counts.processor_seconds);
  const LedgerEnergy energy = energy_of(counts, pricing.power);
  if (!energy.is_known) return told.dump();
  if (energy.are_processors_measured || counts.processor_seconds) {
    told["processor_energy"] =
        energy.are_processors_measured ? "measured" : "modelled";
  }
  told["kwh"] = energy.kwh;
  if (pricing.carbon.region.empty()) return told.dump();
  // A run whose hours are not told has the mean of a day.
  const double grams =
      mean_grams_per_kwh(pricing.carbon, counts.began.value_or(0),
                         counts.began ? counts.seconds.value_or(0) : kDay);
  told["grid"] = pricing.carbon.region;
  told["grams_per_kwh"] = grams;
  told["co2_grams"] = energy.kwh * grams;
  told["carbon_source"] = pricing.carbon.source;
  return told.dump();
}

void price_metrics(Metrics& metrics, std::uint32_t accelerators_a_node,
                   const Pricing& pricing, const EnergyCount::Joules& energy) {
  const LedgerDollars dollars =
      dollars_of(counts_of(metrics, accelerators_a_node), pricing);
  metrics.set(Metric::kStoreRequestNanodollars, as_nano(dollars.requests));
  metrics.set(Metric::kStoreTransferNanodollars, as_nano(dollars.transfer));
  metrics.set(Metric::kPipelineStalledNanodollars, as_nano(dollars.stalled));
  metrics.set(Metric::kRuntimeProcessorMillijoules,
              as_milli(energy.processors));
  metrics.set(Metric::kRuntimeAcceleratorMillijoules,
              as_milli(energy.accelerators));
}

}  // namespace leat
