#include "tests/cache/driven_cache.h"

#include <algorithm>

namespace leat {
namespace {

std::string body_of(SampleId id) {
  std::string body(driven_length(id), '\0');
  for (std::size_t i = 0; i < body.size(); ++i) {
    body[i] = static_cast<char>(mix64(id.value * 20'000 + i));
  }
  return body;
}

/// Hears which tier had a read, and waits for it.
class Reader final : public ReadObserver {
 public:
  void backs_off(TimePoint, TimePoint) override {}
  void cache_had(CacheLevel level, std::uint64_t) override { had = level; }
  std::optional<CacheLevel> had;
  std::latch is_done{1};
};

}  // namespace

/// A read that has not come yet.
struct DrivenCache::Late {
  SampleId id;
  std::string got;
  Reader reader;
};

NextUseOptions DrivenJob::reads() const {
  return {.samples = kDrivenSamples,
          .global_batch = DrivenCache::kGlobalBatch,
          .ranks = {0, 1, ranks},
          .end_epoch = kDrivenEpochs};
}

NextUse DrivenJob::next_use() const { return *NextUse::make(reads()); }

std::vector<std::function<bool(SampleId)>> DrivenJob::planned() const {
  std::vector<std::function<bool(SampleId)>> planned(tiers.size());
  if (placement == Placement::kFirstEpoch) {
    const auto node_of = *first_epoch_nodes(reads(), ranks);
    std::ranges::fill(planned, planned_on(node_of, 0));
  } else if (placement == Placement::kFrequency) {
    std::vector<std::uint64_t> limits;
    for (const DrivenTier& tier : tiers) limits.push_back(tier.limit);
    const auto tier_of = std::make_shared<const std::vector<std::uint8_t>>(
        *place_by_frequency(reads(), limits, simulation().sizes));
    for (std::size_t i = 0; i < tiers.size(); ++i) {
      planned[i] = planned_in(tier_of, i);
    }
  }
  return planned;
}

SimulationOptions DrivenJob::simulation() const {
  SimulationOptions options;
  options.samples = kDrivenSamples;
  options.sizes.clear();
  for (std::uint64_t i = 0; i < kDrivenSamples; ++i) {
    options.sizes.push_back(record_cost(driven_length(SampleId{i})));
  }
  options.global_batch = DrivenCache::kGlobalBatch;
  options.locality = locality;
  options.placement = placement;
  options.ranks = ranks;
  options.nodes = ranks;
  options.only_ranks = 1;
  options.epochs = kDrivenEpochs;
  for (const DrivenTier& tier : tiers) {
    options.tiers.push_back(
        {.policy = policy, .capacity = tier.limit, .window = window()});
  }
  return options;
}

TierStack DrivenJob::stack(const std::vector<std::uint64_t>& sizes) const {
  std::vector<std::unique_ptr<CachePolicy>> policies;
  const auto planned_for = planned();
  for (const DrivenTier& tier : tiers) {
    policies.push_back(
        *make_cache_policy({.name = policy,
                            .samples = kDrivenSamples,
                            .capacity = tier.limit,
                            .window = window(),
                            .planned = planned_for[policies.size()]}));
  }
  return {std::move(policies), next_use(), sizes};
}

DrivenCache::DrivenCache(DrivenJob job, const std::string& folder)
    : job_(std::move(job)), next_use_(job_.next_use()) {
  MemoryObjects objects;
  for (std::uint64_t i = 0; i < kDrivenSamples; ++i) {
    objects[std::to_string(i)] = body_of(SampleId{i});
  }
  auto store = open_memory_store(std::move(objects));
  for (std::uint64_t i = 0; i < kDrivenSamples; ++i) {
    etags_.push_back(store->stat(std::to_string(i), {})->etag);
  }
  std::vector<CacheTier> tiers;
  const auto planned_for = job_.planned();
  for (const DrivenTier& tier : job_.tiers) {
    const bool is_ram = tier.level == CacheLevel::kRam;
    auto files =
        is_ram ? open_segment_memory(ops_) : *open_segment_folder(folder, ops_);
    tiers.push_back(
        {.level = tier.level,
         .tier = *SegmentTier::open(
             std::move(files),
             {.limit_bytes = tier.limit,
              .segment_bytes = 128 * kKiB,
              .source = 1,
              .bytes_metric =
                  is_ram ? Metric::kCacheRamBytes : Metric::kCacheDiskBytes,
              .allowed_metric = is_ram ? Metric::kCacheRamAllowedBytes
                                       : Metric::kCacheDiskAllowedBytes},
             ops_, clock_, &metrics_),
         .policy = *RecordPolicy::make({.name = job_.policy,
                                        .samples = kDrivenSamples,
                                        .capacity = tier.limit,
                                        .window = job_.window(),
                                        .planned = planned_for[tiers.size()]}),
         .is_lasting = !is_ram,
         .keeps_copies =
             !is_ram &&
             has_policy_trait(job_.policy, &CachePolicyKind::takes_late_uses)});
  }
  std::unique_ptr<Store> inner = std::move(store);
  if (job_.late_reads != 0) {
    auto held = std::make_unique<testing::HeldStore>(std::move(inner));
    held_ = held.get();
    inner = std::move(held);
  }
  store_ = std::make_unique<CachedStore>(
      std::move(inner), std::move(tiers),
      CachedStoreOptions{
          .place = "",
          .epoch_time = kDrivenSamples,
          .decides_when_sent = has_policy_trait(
              job_.policy, &CachePolicyKind::goes_by_order_of_reads)},
      &metrics_);
  if (!deals_to_holders(job_.locality)) return;
  dealing_ = *HolderDealing::make(
      {.samples = kDrivenSamples,
       .global_batch = kGlobalBatch,
       .world_size = job_.ranks,
       .policy = job_.policy,
       .capacity = job_.tiers.front().limit,
       .cost = [](SampleId id) { return record_cost(driven_length(id)); },
       .is_balanced = job_.locality == Locality::kBalance,
       .epochs = kDrivenEpochs});
}

DrivenCache::~DrivenCache() {
  while (!late_.empty()) let_oldest_come();
}

void DrivenCache::let_oldest_come() {
  held_->release_one();
  Late& late = *late_.front();
  late.reader.is_done.wait();
  EXPECT_EQ(late.got, body_of(late.id));
  late_.pop_front();
}

bool DrivenCache::read_ahead(SampleId id, std::uint64_t epoch,
                             std::uint64_t position) {
  auto late = std::make_unique<Late>();
  late->id = id;
  late->got.resize(driven_length(id));
  const auto is_same = [&](const auto& other) { return other->id == id; };
  const bool is_coming = std::ranges::any_of(late_, is_same);
  const std::size_t held_before = held_->held().size();
  store_->read(
      {.object = {.key = std::to_string(id.value), .etag = etags_[id.value]},
       .into = std::as_writable_bytes(std::span(late->got)),
       .observer = &late->reader,
       .hint =
           ReadHint{.now = next_use_.time_of(epoch, position),
                    .next_use = next_use_.at_or_after(id, epoch, position + 1),
                    .sample = id.value}},
      {}, [done = &late->reader.is_done](const Result<void>& result) {
        EXPECT_TRUE(result);
        done->count_down();
      });
  const bool is_hit = held_->held().size() == held_before;
  while (is_coming && std::ranges::any_of(late_, is_same)) let_oldest_come();
  if (is_hit) {
    late->reader.is_done.wait();
  } else {
    late_.push_back(std::move(late));
  }
  if (late_.size() > job_.late_reads) let_oldest_come();
  store_->drain();
  return is_hit;
}

std::optional<CacheLevel> DrivenCache::read(SampleId id, std::uint64_t epoch,
                                            std::uint64_t position) {
  return read_at(id, next_use_.time_of(epoch, position),
                 next_use_.at_or_after(id, epoch, position + 1));
}

std::optional<CacheLevel> DrivenCache::read_at(SampleId id, AccessTime now,
                                               AccessTime next_use) {
  Reader reader;
  std::string got(driven_length(id), ' ');
  store_->read(
      {.object = {.key = std::to_string(id.value), .etag = etags_[id.value]},
       .into = std::as_writable_bytes(std::span(got)),
       .observer = &reader,
       .hint = ReadHint{.now = now, .next_use = next_use, .sample = id.value}},
      {}, [&](const Result<void>& result) {
        EXPECT_TRUE(result);
        reader.is_done.count_down();
      });
  reader.is_done.wait();
  EXPECT_EQ(got, body_of(id));
  store_->drain();
  return reader.had;
}

}  // namespace leat
