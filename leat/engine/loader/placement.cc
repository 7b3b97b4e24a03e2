#include "leat/engine/loader/placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "leat/base/errors.h"
#include "leat/engine/read_sizes.h"
#include "leat/plan/next_use.h"
#include "leat/plan/placement.h"

namespace leat {
namespace {

constexpr std::uint64_t kMostReads = 2'000'000'000;  // Minutes to count.
/// Each takes 17 bytes while they are placed.
constexpr std::uint64_t kMostPlaced = 128'000'000;

Error refusal(std::string_view option, std::string_view why) {
  return invalid("{} {}; or leave it out", option, why);
}

Result<void> check_reads(std::string_view option, std::uint64_t epochs,
                         std::uint64_t samples) {
  if (epochs <= kMostReads / std::max<std::uint64_t>(1, samples)) return {};
  return refusal(
      option, fmt::format("counts the reads of all epochs, and those of {} "
                          "samples in {} epochs are more than {}; give fewer "
                          "epochs=",
                          samples, epochs, kMostReads));
}

std::string option_of(Placement placement) {
  return fmt::format("the cache's placement=\"{}\"", to_string(placement));
}

/// A placement needs numbered samples that go to the planned ranks.
Result<void> check_placeable(std::string_view option, const Job& job,
                             const Schedule& schedule) {
  if (schedule.catalogue() == nullptr) {
    return refusal(option,
                   "needs an index of the shards; make one with `leat index`");
  }
  if (job.options.locality != Locality::kNone) {
    return refusal(option,
                   "places samples where ranks read their runs of each step, "
                   "and locality= deals them otherwise; leave that out");
  }
  return {};
}

Result<void> check_placement(const Job& job, const Schedule& schedule) {
  const std::string option = option_of(job.options.cache->placement);
  const auto refuse = [&](std::string_view why) {
    return refusal(option, why);
  };
  if (job.options.cache->ram_bytes == 0 && job.options.cache->disk.empty()) {
    return refuse(
        "says what tiers hold, and there are none; give ram= or "
        "disk=");
  }
  LEAT_TRY_VOID(check_placeable(option, job, schedule));
  if (schedule.blocks() != nullptr &&
      job.reads_pieces(schedule.catalogue()->layout())) {
    return refuse(
        "places samples, and one rank reads shards in pieces of many; give "
        "shuffle=\"full\", which reads each by itself");
  }
  if (job.readers.first % job.readers.count != 0 ||
      job.rank.world_size % job.readers.count != 0) {
    return refuse(fmt::format(
        "goes by nodes of as many ranks each, in their order, and here ranks "
        "{} to {} of {} are on one; start as many on each",
        job.readers.first, job.readers.first + job.readers.count - 1,
        job.rank.world_size));
  }
  if (schedule.catalogue()->samples() > kMostPlaced) {
    return refuse(
        fmt::format("places {} samples at most, and here are {}; "
                    "pack them",
                    kMostPlaced, schedule.catalogue()->samples()));
  }
  if (job.options.cache->placement != Placement::kFrequency) return {};
  if (!job.options.epochs) {
    return refuse("counts the reads of all epochs; give epochs=");
  }
  if (job.options.cache->form != CacheForm::kEncoded) {
    return refuse(
        "fills tiers by what samples take as they lie, and this cache may keep "
        "them decoded; give form=\"encoded\"");
  }
  return check_reads(option, *job.options.epochs,
                     schedule.catalogue()->samples());
}

}  // namespace

Result<std::shared_ptr<const std::vector<std::uint16_t>>> place_peers(
    const Job& job, const Schedule& schedule) {
  const std::uint32_t local_ranks = job.local.world_size;
  static constexpr std::string_view kOption = "peer_placement=\"frequency\"";
  const auto refuse = [](std::string_view why) {
    return refusal(kOption, why);
  };
  const std::size_t servers = job.options.cache->peers.size();
  if (servers == 0)
    return refuse("is of peers, and there are none; give peers=");
  if (!job.options.epochs) {
    return refuse("counts the reads of all epochs; give epochs=");
  }
  LEAT_TRY_VOID(check_placeable(kOption, job, schedule));
  if (job.rank.world_size % local_ranks != 0 ||
      servers != job.rank.world_size / local_ranks ||
      servers > std::numeric_limits<std::uint16_t>::max()) {
    return refuse(fmt::format(
        "has a server on each node, in their order, and here are {} for {} "
        "ranks, {} on this node; name one a node",
        servers, job.rank.world_size, local_ranks));
  }
  NextUseOptions uses = schedule.next_use_options(0, 0);
  LEAT_TRY_VOID(check_reads(kOption, *job.options.epochs, uses.samples));
  uses.end_epoch = *job.options.epochs;
  LEAT_TRY(auto nodes,
           nodes_by_frequency(uses, static_cast<std::uint16_t>(servers)));
  return std::make_shared<const std::vector<std::uint16_t>>(std::move(nodes));
}

Result<std::vector<std::function<bool(SampleId)>>> place_in_tiers(
    const Job& job, const Schedule& schedule) {
  const std::uint32_t local_ranks = job.local.world_size;
  LEAT_TRY_VOID(check_placement(job, schedule));
  const CacheOptions& cache = *job.options.cache;
  // The bytes that these ranks may write to each tier: see wrap_in_cache().
  std::vector<std::uint64_t> capacities;
  const auto add = [&](std::uint64_t bytes) {
    capacities.push_back(bytes / local_ranks * job.readers.count);
  };
  if (cache.ram_bytes / local_ranks != 0) add(cache.ram_bytes);
  if (!cache.disk.empty()) add(*cache.disk_limit_bytes);
  std::vector<std::function<bool(SampleId)>> planned;
  NextUseOptions uses = schedule.next_use_options(0, 0);
  if (cache.placement == Placement::kFirstEpoch) {
    LEAT_TRY(const auto nodes,
             first_epoch_nodes(uses, job.rank.world_size / job.readers.count));
    planned.assign(capacities.size(),
                   planned_on(nodes, job.readers.first / job.readers.count));
    return planned;
  }
  uses.end_epoch = *job.options.epochs;
  const auto cost_of = schedule.costs_of_samples();
  std::vector<std::uint64_t> costs(uses.samples);
  for (std::uint64_t i = 0; i < uses.samples; ++i) {
    costs[i] = cost_of(SampleId{i});
  }
  LEAT_TRY(auto tiers, place_by_frequency(uses, capacities, costs));
  const auto tier_of =
      std::make_shared<const std::vector<std::uint8_t>>(std::move(tiers));
  for (std::size_t tier = 0; tier < capacities.size(); ++tier) {
    planned.push_back(planned_in(tier_of, tier));
  }
  return planned;
}

Result<void> check_placed_for(const Job& job, const Schedule& schedule,
                              const LoaderState& state) {
  if (!job.options.cache || job.options.cache->placement == Placement::kAny ||
      state.global_batch_size == schedule.global_batch()) {
    return {};
  }
  return invalid(
      "the state is of a global batch of {}, and {} was placed for one of {}; "
      "give global_batch_size={}",
      state.global_batch_size, option_of(job.options.cache->placement),
      schedule.global_batch(), state.global_batch_size);
}

}  // namespace leat
