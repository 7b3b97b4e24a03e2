// Samples dealt to the ranks whose caches hold them: the options that all ranks
// have to simulate alike, and the checks of them.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "leat/engine/loader_machine.h"
#include "leat/engine/read_sizes.h"

namespace leat {
namespace {

/// Some minutes of work: a user who asks for more has mistyped an epoch.
constexpr std::uint64_t kMostSimulated = 2'000'000'000;

Error refuse(std::string message) {
  return Error(ErrorCode::kInvalidArgument, std::move(message));
}

/// Columns whose bytes are fetched; each once, for any number of fields made of
/// it.
std::vector<std::size_t> fetched_columns(
    const std::vector<DeliveredField>& fields) {
  std::vector<std::size_t> columns;
  for (const DeliveredField& field : fields) {
    if (field.is_fetched()) columns.push_back(field.column);
  }
  std::ranges::sort(columns);
  const auto same = std::ranges::unique(columns);
  columns.erase(same.begin(), same.end());
  return columns;
}

}  // namespace

Result<void> Loader::Machine::check_locality() const {
  if (!deals_to_holders(options.locality)) return {};
  const std::string name =
      fmt::format("locality=\"{}\"", to_string(options.locality));
  const bool has_tier = options.cache && (options.cache->is_auto ||
                                          options.cache->ram_bytes != 0 ||
                                          !options.cache->disk.empty());
  if (!has_tier) {
    return refuse(name +
                  " deals samples to the ranks whose cache holds them, and "
                  "there is none; give cache= with ram= or disk=");
  }
  if (options.cache->form.value_or(CacheForm::kEncoded) !=
      CacheForm::kEncoded) {
    return refuse(name +
                  " simulates caches of bytes, and this one may keep samples "
                  "decoded; leave form= out");
  }
  if (options.cache->is_auto ||
      (!options.cache->disk.empty() && !options.cache->disk_limit_bytes)) {
    return refuse(name +
                  " needs caches of the same size on all nodes, and here each "
                  "would choose its own; give cache= with ram=, or disk= and "
                  "disk_limit=");
  }
  return {};
}

std::function<std::uint64_t(SampleId)> Loader::Machine::costs_of_samples()
    const {
  return [catalogue = dataset.catalogue,
          columns = fetched_columns(fields)](SampleId sample) {
    std::uint64_t cost = 0;
    for (const std::size_t column : columns) {
      cost += read_size_of(catalogue->range(column, sample)).cost;
    }
    return cost;
  };
}

Result<void> Loader::Machine::plan_locality(std::uint32_t local_ranks) {
  if (!deals_to_holders(locality())) return {};
  const CacheOptions& cache = *options.cache;
  holders = HolderDealingOptions{
      // Before there is a catalogue, as if it were one step.
      .samples = samples().value_or(global_batch),
      .order = order,
      .blocks = blocks,
      .tail = tail,
      .world_size = rank.world_size,
      .policy = cache.policy,
      // The bytes of the largest tier that each rank may write.
      .capacity =
          std::max(cache.ram_bytes, cache.disk_limit_bytes.value_or(0)) /
          local_ranks,
      .unit = CapacityUnit::kBytes,
      .is_balanced = options.locality == Locality::kBalance,
      .epochs = options.epochs.value_or(kNever)};
  if (dataset.catalogue != nullptr) holders->cost = costs_of_samples();
  // Errors are told now, and not by the first batch.
  LEAT_TRY_VOID(make_dealing(0));
  return {};
}

Result<std::unique_ptr<HolderDealing>> Loader::Machine::make_dealing(
    std::uint64_t which) const {
  if (which > kMostSimulated / std::max<std::uint64_t>(1, holders->samples)) {
    return refuse(fmt::format(
        "to begin epoch {} with locality=\"{}\" the caches of all {} epochs "
        "before have to be simulated, and at {} samples that is past {}; begin "
        "at a lower epoch, or with locality=\"sticky\", which needs none",
        which, to_string(options.locality), which, holders->samples,
        kMostSimulated));
  }
  HolderDealingOptions now = *holders;
  now.global_batch = global_batch;
  return HolderDealing::make(now);
}

std::string Loader::dealing() const {
  const Machine& m = *machine_;
  const MutexLock lock(m.mutex);
  std::string name(to_string(m.options.locality));
  if (m.options.weights != nullptr) {
    const WeightedOrder& drawn = *m.options.weights;
    name += fmt::format(", {} samples an epoch drawn by weights {}",
                        drawn.size(0).value_or(0), drawn.digest().hex());
  }
  if (!m.holders) return name;
  std::vector<std::string> columns;
  if (m.order.shuffle == Shuffle::kStream) {
    // A rank that has no catalogue yet has to say the same as one that has.
    columns = m.options.fields;
  } else {
    for (const std::size_t column : fetched_columns(m.fields)) {
      columns.push_back(m.dataset.catalogue->fields()[column].name);
    }
  }
  return fmt::format("{} over caches of {} bytes a rank, {}, of {}", name,
                     m.holders->capacity, m.holders->policy,
                     fmt::join(columns, ", "));
}

}  // namespace leat
