#include "leat/engine/caches.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "leat/base/errors.h"
#include "leat/base/hash.h"
#include "leat/base/units.h"
#include "leat/cache/cached_store.h"
#include "leat/cache/exchange_folder.h"
#include "leat/cache/memcached/peer_store.h"
#include "leat/cache/memcached/peer_tier.h"
#include "leat/cache/segment_exchange.h"
#include "leat/cache/segment_format.h"
#include "leat/plan/cache_policy.h"
#include "leat/runtime/log.h"

namespace leat {
namespace {

/// Longer ranges are kept in parts, each a record.
constexpr std::uint64_t kPartBytes = 8 * kMiB;
/// The bytes that may wait to be written, in addition to the tiers: an eighth
/// of the tiers' bytes, within these bounds.
constexpr std::uint64_t kLeastQueueBytes = 8 * kMiB;
constexpr std::uint64_t kMostQueueBytes = 64 * kMiB;
/// How often the tiers look for records that others wrote; other jobs are
/// looked at more often, since they may read the same data at any time.
constexpr Nanoseconds kCatchUp = std::chrono::milliseconds(50);
constexpr Nanoseconds kSharedCatchUp = std::chrono::milliseconds(10);

/// The placement for the `index`-th tier; null: all samples.
std::function<bool(SampleId)> planned_for(const CacheNeeds& needs,
                                          std::size_t index) {
  if (needs.planned.empty()) return nullptr;
  return needs.planned[index];
}

Result<CacheTier> plan_tier(CacheLevel level, std::unique_ptr<SegmentTier> tier,
                            const CacheOptions& options,
                            const CacheNeeds& needs,
                            std::function<bool(SampleId)> planned) {
  // The other writers' policies manage the rest.
  const std::uint64_t limit =
      tier->options().limit_bytes / tier->options().expected_writers;
  const std::uint64_t records =
      std::min({limit / record_cost(1) + 1,
                needs.samples * needs.fields * (needs.may_decode ? 2 : 1) +
                    limit / kPartBytes + 1,
                CachePolicySpec::kMaxSamples});
  LEAT_TRY(std::unique_ptr<RecordPolicy> policy,
           RecordPolicy::make({.name = options.policy,
                               .samples = records,
                               .capacity = limit,
                               .window = options.window,
                               .epoch_reads = needs.samples,
                               .planned = std::move(planned)}));
  const bool takes_late_uses = policy->kind().takes_late_uses;
  return CacheTier{
      .level = level,
      .tier = std::move(tier),
      .policy = std::move(policy),
      .is_lasting = level == CacheLevel::kDisk,
      .keeps_copies = level == CacheLevel::kDisk && takes_late_uses};
}

/// Opens the tier for all local ranks if they can share it, otherwise for this
/// one alone; then `needs` has no exchange any more.
Result<std::unique_ptr<SegmentTier>> open_ram(std::uint64_t node_bytes,
                                              std::uint64_t source,
                                              CacheNeeds& needs, FileOps& ops,
                                              const Clock& clock,
                                              Metrics* metrics) {
  SegmentTierOptions options{.name = "ram",
                             .limit_bytes = node_bytes,
                             .expected_writers = needs.local_ranks,
                             .source = source,
                             .bytes_metric = Metric::kCacheRamBytes,
                             .allowed_metric = Metric::kCacheRamAllowedBytes};
  if (!needs.exchange.empty()) {
    auto files = open_segment_exchange(needs.exchange, ops);
    if (files) {
      return SegmentTier::open(*std::move(files), options, ops, clock, metrics);
    }
    log_warning("each rank keeps its share of the RAM tier to itself: " +
                files.error().message());
    needs.exchange.clear();
  }
  options.limit_bytes = node_bytes / needs.local_ranks;
  options.expected_writers = 1;
  return SegmentTier::open(open_segment_memory(ops), options, ops, clock,
                           metrics);
}

Result<std::unique_ptr<SegmentTier>> open_disk(const CacheOptions& options,
                                               const CacheNeeds& needs,
                                               std::uint64_t source,
                                               FileOps& ops, const Clock& clock,
                                               Metrics* metrics) {
  LEAT_TRY(auto files, open_segment_folder(options.disk, ops));
  return SegmentTier::open(std::move(files),
                           {.name = "disk",
                            .limit_bytes = *options.disk_limit_bytes,
                            .expected_writers = needs.local_ranks,
                            .source = source,
                            .bytes_metric = Metric::kCacheDiskBytes},
                           ops, clock, metrics);
}

Error with_remedy(Error error) {
  const bool is_denied = error.code() == ErrorCode::kPermissionDenied;
  return Error(
      error.code(),
      error.message() + (is_denied ? "; name a folder in disk= that "
                                     "this user may write in, or let it"
                                   : "; name another folder in disk="));
}

/// The folder in which all jobs find each other, beside their shared
/// records.
CacheSharing open_sharing(const CacheOptions& options, const CacheNeeds& needs,
                          std::uint64_t tier_bytes) {
  CacheSharing sharing;
  const std::string& folder =
      options.disk.empty() ? needs.exchange : options.disk;
  if (!options.is_shared || folder.empty()) return sharing;
  const auto tell = [&](std::string_view what, const Error& error) {
    log_warning(
        fmt::format("jobs that share the cache {}: {}", what, error.message()));
  };
  if (auto claims = RecordClaims::open(folder)) {
    sharing.claims = *std::move(claims);
  } else {
    tell("fetch each for itself what several miss at once", claims.error());
  }
  if (auto board = JobBoard::open(folder, needs.dataset, needs.samples)) {
    sharing.board = *std::move(board);
  } else {
    tell("do not know what the others have yet to read", board.error());
  }
  // The room that they take: the samples' bytes and the pages' padding.
  const std::uint64_t bytes =
      needs.data_bytes + needs.samples * needs.fields * record_cost(1) / 2;
  sharing.keeps_bytes = needs.may_decode && bytes <= tier_bytes / 4 * 3;
  return sharing;
}

/// Peers stand behind the tiers of this node: a record that a tier has is not
/// asked of a peer.
Result<std::unique_ptr<Store>> wrap_in_peers(OpenedStore& opened,
                                             const CacheOptions& options,
                                             const CacheNeeds& needs,
                                             Metrics* metrics) {
  PeerOptions asked;
  asked.servers = options.peers;
  asked.settings.patience = options.peer_patience;
  asked.settings.key = peer_key_of(options.peer_secret);
  asked.dataset_bytes = needs.data_bytes;
  LEAT_TRY(auto peers, PeerTier::open(asked));
  return std::unique_ptr<Store>(std::make_unique<PeerStore>(
      std::move(opened.store), std::move(peers), opened.endpoint + "\n",
      metrics, needs.peer_of));
}

}  // namespace

Result<CacheForm> cache_form_of(std::string_view name) {
  if (name == "encoded") return CacheForm::kEncoded;
  if (name == "decoded") return CacheForm::kDecoded;
  if (name == "auto") return CacheForm::kAuto;
  return invalid("the cache's form \"{}\"; it is encoded, decoded or auto",
                 name);
}

Result<PeerPlacement> peer_placement_of(std::string_view name) {
  if (name == "key") return PeerPlacement::kKey;
  if (name == "frequency") return PeerPlacement::kFrequency;
  return invalid("the placement of peers \"{}\"; it is key or frequency", name);
}

namespace {

constexpr std::string_view kExchangePrefix = "leat-ram-";

std::string exchange_base(const Env& env) {
  return value_of(env, "XDG_RUNTIME_DIR").value_or("/tmp");
}

/// The name is short, because the name of a socket has at most 108 bytes.
std::string folder_of(const Env& env, const std::string& job) {
  return fmt::format("{}/{}{}", exchange_base(env), kExchangePrefix,
                     xxh3_128(as_bytes(job)).hex());
}

}  // namespace

void sweep_exchange_folders(const Env& env, FileOps& ops) {
  sweep_exchange_folders(exchange_base(env), kExchangePrefix, ops);
}

std::string shared_folder(const Env& env, std::string_view what) {
  return folder_of(env, fmt::format("{}\n{}\nshared", ::geteuid(), what));
}

std::string exchange_folder(const Env& env, std::string_view what) {
  std::string job = fmt::format("{}\n{}", ::geteuid(), what);
  bool is_named = false;
  for (const char* name : {"TORCHELASTIC_RUN_ID", "MASTER_PORT", "SLURM_JOB_ID",
                           "SLURM_STEP_ID", "PMIX_NAMESPACE"}) {
    const auto value = value_of(env, name);
    if (value) job += fmt::format("\n{}={}", name, *value);
    is_named = is_named || value;
  }
  if (!is_named) job += fmt::format("\n{}", ::getppid());
  return folder_of(env, job);
}

Result<std::unique_ptr<Store>> wrap_in_cache(OpenedStore& opened,
                                             const CacheOptions& options,
                                             CacheNeeds needs,
                                             CacheGround& ground,
                                             Metrics* metrics) {
  if (!options.peers.empty()) {
    LEAT_TRY(opened.store, wrap_in_peers(opened, options, needs, metrics));
  }
  FileOps& ops = options.file_ops == nullptr ? ground.ops : *options.file_ops;
  std::vector<CacheTier> tiers;
  const std::uint64_t source = xxh3_64(as_bytes(opened.identity));
  if (options.ram_bytes / needs.local_ranks != 0) {
    LEAT_TRY(auto tier, open_ram(options.ram_bytes, source, needs, ops,
                                 ground.clock, metrics));
    LEAT_TRY(CacheTier planned,
             plan_tier(CacheLevel::kRam, std::move(tier), options, needs,
                       planned_for(needs, tiers.size())));
    tiers.push_back(std::move(planned));
  }
  if (!options.disk.empty()) {
    Result<std::unique_ptr<SegmentTier>> tier =
        open_disk(options, needs, source, ops, ground.clock, metrics);
    if (!tier) return with_remedy(std::move(tier).error());
    LEAT_TRY(CacheTier planned,
             plan_tier(CacheLevel::kDisk, *std::move(tier), options, needs,
                       planned_for(needs, tiers.size())));
    tiers.push_back(std::move(planned));
  }
  if (tiers.empty()) return std::move(opened.store);
  std::uint64_t tier_bytes = 0;
  for (const CacheTier& tier : tiers) {
    tier_bytes += tier.tier->options().limit_bytes;
  }
  const bool decides_when_sent =
      tiers.front().policy->kind().goes_by_order_of_reads;
  auto cached = std::make_unique<CachedStore>(
      std::move(opened.store), std::move(tiers),
      CachedStoreOptions{
          .place = opened.endpoint + "\n",
          .decides_when_sent = decides_when_sent,
          .queue_bytes =
              std::clamp(tier_bytes / 8, kLeastQueueBytes, kMostQueueBytes),
          .catch_up_every = options.is_shared ? kSharedCatchUp : kCatchUp},
      metrics, open_sharing(options, needs, tier_bytes));
  opened.cached = cached.get();
  return std::unique_ptr<Store>(std::move(cached));
}

void set_cache_share(const OpenedStore& opened, CacheLevel level,
                     std::optional<std::uint64_t> bytes) {
  opened.cached->set_share(level, bytes);
}

void begin_cache_plan(
    const OpenedStore& opened, std::uint64_t now,
    const std::function<std::uint64_t(SampleId)>& next_use_of) {
  opened.cached->begin_plan(now, next_use_of);
}

void set_least_cache_queue(const OpenedStore& opened, std::uint64_t bytes) {
  opened.cached->set_least_queue(bytes);
}

}  // namespace leat
