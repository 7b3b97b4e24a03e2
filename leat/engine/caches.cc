#include "leat/engine/caches.h"

#include <fmt/format.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>
#include <vector>

#include "leat/base/hash.h"
#include "leat/base/units.h"
#include "leat/cache/cached_store.h"
#include "leat/cache/memcached/peer_store.h"
#include "leat/cache/memcached/peer_tier.h"
#include "leat/cache/segment_exchange.h"
#include "leat/cache/segment_format.h"
#include "leat/plan/cache_policy.h"
#include "leat/runtime/log.h"

namespace leat {
namespace {

/// Ranges longer than this come in parts, each a record.
constexpr std::uint64_t kPartBytes = 8 * kMiB;
/// Of a picture, decoded, times its bytes, at most as a rule.
constexpr std::uint64_t kUsualGrowth = 12;
/// Less than this is not worth a tier that nobody asked for.
constexpr std::uint64_t kLeastBytes = 64 * kMiB;
/// What may wait to be written, beside the tiers: an eighth of them, within
/// these.
constexpr std::uint64_t kLeastQueueBytes = 8 * kMiB;
constexpr std::uint64_t kMostQueueBytes = 64 * kMiB;
/// What others wrote is seen this often; sooner where they are other jobs, who
/// may read the same at any time.
constexpr Nanoseconds kCatchUp = std::chrono::milliseconds(50);
constexpr Nanoseconds kSharedCatchUp = std::chrono::milliseconds(10);

Error refuse(std::string message) {
  return Error(ErrorCode::kInvalidArgument, std::move(message));
}

/// MemAvailable: what could be had without swapping.
std::uint64_t free_memory_bytes() {
  std::ifstream meminfo("/proc/meminfo");
  for (std::string word; meminfo >> word;) {
    std::uint64_t kib = 0;
    if (word == "MemAvailable:" && meminfo >> kib) return kib * kKiB;
  }
  return 0;
}

/// The nearest folder above `path` that is there.
std::filesystem::path existing_part(std::filesystem::path path) {
  std::error_code error;
  path = std::filesystem::absolute(path, error);
  while (!std::filesystem::exists(path, error) && path.has_relative_path()) {
    path = path.parent_path();
  }
  return path;
}

/// What segments in `folder` take already is as good as free.
std::uint64_t free_disk_bytes(const std::string& folder) {
  struct statfs now {};
  if (::statfs(existing_part(folder).c_str(), &now) != 0) return 0;
  std::uint64_t bytes =
      std::uint64_t{now.f_bavail} * static_cast<std::uint64_t>(now.f_bsize);
  for (const std::string& path : segment_paths(folder)) {
    bytes += allocated_bytes_of(path);
  }
  return bytes;
}

bool is_in_memory(const std::string& folder) {
  constexpr long kTmpfs = 0x01021994;
  constexpr long kRamfs = 0x858458f6;
  struct statfs now {};
  return ::statfs(existing_part(folder).c_str(), &now) != 0 ||
         now.f_type == kTmpfs || now.f_type == kRamfs;
}

void choose_sizes(CacheOptions& options, const CacheNeeds& needs,
                  const Limits& limits, const Env& env) {
  // With pages that are not full.
  const std::uint64_t enough =
      needs.data_bytes * (needs.may_decode ? kUsualGrowth : 1) +
      needs.samples * needs.fields * record_cost(1);
  options.ram_bytes =
      std::min({free_memory_bytes() / 4, limits.memory_bytes / 4, enough});
  const auto folder = user_cache_folder(env);
  if (!folder || is_in_memory(*folder)) return;
  options.disk = *folder + "/records";
  options.disk_limit_bytes =
      std::min(free_disk_bytes(options.disk) / 2, enough);
  if (*options.disk_limit_bytes < std::min(kLeastBytes, enough)) {
    options.disk.clear();
    options.disk_limit_bytes.reset();
  }
}

Result<CacheTier> plan_tier(CacheLevel level, std::unique_ptr<SegmentTier> tier,
                            const CacheOptions& options,
                            const CacheNeeds& needs) {
  // What others hold, their policies know.
  const std::uint64_t limit =
      tier->options().limit_bytes / tier->options().expected_writers;
  const std::uint64_t records =
      std::min({limit / record_cost(1) + 1,
                needs.samples * needs.fields * (needs.may_decode ? 2 : 1) +
                    limit / kPartBytes + 1,
                CachePolicySpec::kMaxSamples});
  LEAT_TRY(
      std::unique_ptr<CachePolicy> policy,
      make_cache_policy(
          {.name = options.policy, .samples = records, .capacity = limit}));
  return CacheTier{
      .level = level,
      .tier = std::move(tier),
      .policy = std::make_unique<RecordPolicy>(std::move(policy), records),
      .is_lasting = level == CacheLevel::kDisk,
      .keeps_copies = level == CacheLevel::kDisk && options.policy == "belady"};
}

Result<void> check_policy(const std::string& name) {
  // A window is for caches in front of a model's tables, not of a store.
  std::string known;
  for (const std::string_view one : cache_policy_names()) {
    if (one == "windowed_belady") continue;
    if (name == one) return {};
    known.append(known.empty() ? "" : ", ").append(one);
  }
  return refuse(
      fmt::format("the cache's policy \"{}\"; it is one of {}", name, known));
}

/// Of all local ranks where they can share it, else of this one alone: then
/// `needs` has no exchange any more.
Result<std::unique_ptr<SegmentTier>> open_ram(std::uint64_t node_bytes,
                                              std::uint64_t source,
                                              CacheNeeds& needs,
                                              CacheGround& ground,
                                              Metrics* metrics) {
  SegmentTierOptions options{.name = "ram",
                             .limit_bytes = node_bytes,
                             .expected_writers = needs.local_ranks,
                             .source = source,
                             .bytes_metric = Metric::kCacheRamBytes,
                             .allowed_metric = Metric::kCacheRamAllowedBytes};
  if (!needs.exchange.empty()) {
    auto files = open_segment_exchange(needs.exchange, ground.ops);
    if (files) {
      return SegmentTier::open(*std::move(files), options, ground.ops,
                               ground.clock, metrics);
    }
    log_warning("each rank keeps its share of the RAM tier to itself: " +
                files.error().message());
    needs.exchange.clear();
  }
  options.limit_bytes = node_bytes / needs.local_ranks;
  options.expected_writers = 1;
  return SegmentTier::open(open_segment_memory(ground.ops), options, ground.ops,
                           ground.clock, metrics);
}

/// Where all jobs find each other: beside the records that they share.
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
  // By what they lie in: the bytes of samples, and what fills up pages.
  const std::uint64_t bytes =
      needs.data_bytes + needs.samples * needs.fields * record_cost(1) / 2;
  sharing.keeps_bytes = needs.may_decode && bytes <= tier_bytes / 2;
  return sharing;
}

/// Behind the tiers of this node: what they have is not asked of a peer.
Result<std::unique_ptr<Store>> wrap_in_peers(OpenedStore& opened,
                                             const CacheOptions& options,
                                             const CacheNeeds& needs,
                                             Metrics* metrics) {
  PeerOptions asked;
  asked.servers = options.peers;
  asked.settings.patience = options.peer_patience;
  asked.dataset_bytes = needs.data_bytes;
  LEAT_TRY(auto peers, PeerTier::open(asked));
  return std::unique_ptr<Store>(
      std::make_unique<PeerStore>(std::move(opened.store), std::move(peers),
                                  opened.endpoint + "\n", metrics));
}

}  // namespace

Result<CacheForm> cache_form_of(std::string_view name) {
  if (name == "encoded") return CacheForm::kEncoded;
  if (name == "decoded") return CacheForm::kDecoded;
  if (name == "auto") return CacheForm::kAuto;
  return refuse(fmt::format(
      "the cache's form \"{}\"; it is encoded, decoded or auto", name));
}

namespace {

/// Short: the name of a socket has 108 bytes.
std::string folder_of(const Env& env, const std::string& job) {
  const std::string base = value_of(env, "XDG_RUNTIME_DIR").value_or("/tmp");
  return fmt::format("{}/leat-ram-{}", base, xxh3_128(as_bytes(job)).hex());
}

}  // namespace

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

Result<CacheOptions> choose_cache(const CacheOptions& options,
                                  const CacheNeeds& needs, const Limits& limits,
                                  const Env& env) {
  CacheOptions chosen = options;
  LEAT_TRY_VOID(check_policy(chosen.policy));
  if (chosen.is_auto) {
    choose_sizes(chosen, needs, limits, env);
    return chosen;
  }
  if (chosen.is_shared && chosen.ram_bytes == 0 && chosen.disk.empty()) {
    return refuse("shared=True shares ram= and disk=; give one of them");
  }
  if (chosen.disk.empty() && chosen.disk_limit_bytes) {
    return refuse("disk_limit= of a cache without disk=; name its folder");
  }
  if (chosen.ram_bytes == 0 && chosen.disk.empty() && chosen.peers.empty()) {
    return refuse(
        "a cache of nothing; give ram=, such as \"8GiB\", disk= or peers=");
  }
  if (!chosen.disk.empty() && !chosen.disk_limit_bytes) {
    chosen.disk_limit_bytes = free_disk_bytes(chosen.disk) / 2;
  }
  return chosen;
}

std::string describe(const CacheOptions& options) {
  std::string text;
  if (options.ram_bytes != 0) {
    text = format_bytes(options.ram_bytes) + " of RAM";
  }
  if (!options.disk.empty()) {
    text += fmt::format("{}{} in {}", text.empty() ? "" : " and ",
                        format_bytes(*options.disk_limit_bytes), options.disk);
  }
  if (!options.peers.empty()) {
    text +=
        fmt::format("{}{} peer{}", text.empty() ? "" : " and ",
                    options.peers.size(), options.peers.size() == 1 ? "" : "s");
  }
  return text.empty() ? "nothing: too little is free" : text;
}

Result<std::unique_ptr<Store>> wrap_in_cache(OpenedStore& opened,
                                             const CacheOptions& options,
                                             CacheNeeds needs,
                                             CacheGround& ground,
                                             Metrics* metrics) {
  if (!options.peers.empty()) {
    LEAT_TRY(opened.store, wrap_in_peers(opened, options, needs, metrics));
  }
  std::vector<CacheTier> tiers;
  const std::uint64_t source = xxh3_64(as_bytes(opened.identity));
  if (options.ram_bytes / needs.local_ranks != 0) {
    LEAT_TRY(auto tier,
             open_ram(options.ram_bytes, source, needs, ground, metrics));
    LEAT_TRY(CacheTier planned,
             plan_tier(CacheLevel::kRam, std::move(tier), options, needs));
    tiers.push_back(std::move(planned));
  }
  if (!options.disk.empty()) {
    LEAT_TRY(auto files, open_segment_folder(options.disk, ground.ops));
    LEAT_TRY(auto tier,
             SegmentTier::open(std::move(files),
                               {.name = "disk",
                                .limit_bytes = *options.disk_limit_bytes,
                                .expected_writers = needs.local_ranks,
                                .source = source,
                                .bytes_metric = Metric::kCacheDiskBytes},
                               ground.ops, ground.clock, metrics));
    LEAT_TRY(CacheTier planned,
             plan_tier(CacheLevel::kDisk, std::move(tier), options, needs));
    tiers.push_back(std::move(planned));
  }
  if (tiers.empty()) return std::move(opened.store);
  std::uint64_t tier_bytes = 0;
  for (const CacheTier& tier : tiers) {
    tier_bytes += tier.tier->options().limit_bytes;
  }
  auto cached = std::make_unique<CachedStore>(
      std::move(opened.store), std::move(tiers),
      CachedStoreOptions{
          .place = opened.endpoint + "\n",
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

void set_least_cache_queue(const OpenedStore& opened, std::uint64_t bytes) {
  opened.cached->set_least_queue(bytes);
}

}  // namespace leat
