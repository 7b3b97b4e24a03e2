#include "leat/engine/loader/opened.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "leat/base/units.h"
#include "leat/cache/cached_store.h"
#include "leat/dataset/sample_version.h"
#include "leat/engine/loader/placement.h"
#include "leat/engine/read_sizes.h"
#include "leat/engine/shard_stream.h"
#include "leat/index/build.h"
#include "leat/pipeline/program/user_function.h"
#include "leat/runtime/log.h"

namespace leat {
namespace {

constexpr std::uint64_t kLeastMember = 1024;
/// Decoders get a quarter of the memory, for pictures that they must hold as a
/// whole: it is theirs alone, so nobody waits for a batch while decoding one.
constexpr std::uint64_t kDecodersShare = 4;
/// Less memory is for tiny pictures, which decoders hold in a few hundred KiB.
constexpr std::uint64_t kLeastShared = 16 * kMiB;

std::uint64_t decoders_bytes(const Job& job, const RankLimits& mine) {
  const bool decodes =
      std::ranges::any_of(job.options.ops, [](const OpSpec& op) {
        return op.name == "decode_image" || op.name == "decode_mask";
      });
  const bool has_room = mine.memory_bytes >= kLeastShared;
  return decodes && has_room ? mine.memory_bytes / kDecodersShare : 0;
}

CacheNeeds needs_of(const Job& job, const Schedule& schedule) {
  CacheNeeds needs{
      .data_bytes = job.data_bytes,
      .local_ranks = job.local.world_size,
      .may_decode = job.options.cache->form != CacheForm::kEncoded};
  if (schedule.catalogue() == nullptr) {
    // This is an upper bound: a member takes at least a header and a block.
    needs.samples = job.data_bytes / kLeastMember + 1;
    return needs;
  }
  needs.samples = schedule.catalogue()->samples();
  needs.fields = std::max<std::uint64_t>(
      1, std::ranges::count_if(schedule.fields(), [](const auto& field) {
        return field.is_fetched();
      }));
  needs.may_decode = needs.may_decode && DecodedForm::is_for(schedule.fields());
  return needs;
}

/// Local ranks with consecutive numbers read what any of them keeps.
RankRun readers_of(const Job& job) {
  const Rank rank = job.rank;
  const Rank local = job.local;
  RankRun readers{
      .first = rank.rank, .count = 1, .world_size = rank.world_size};
  // Processes of other numbers than their ranks have ranks that nobody knows
  // here: those that share a cache say what they read.
  if (job.options.process) return readers;
  if (local.world_size > 1 && rank.rank >= local.rank &&
      rank.rank - local.rank + local.world_size <= rank.world_size) {
    readers.first = rank.rank - local.rank;
    readers.count = local.world_size;
  }
  return readers;
}

}  // namespace

StreamMemory stream_memory(const Job& job, const UnindexedShards& shards,
                           std::uint64_t memory_bytes) {
  const bool reads_ahead = shards.log == nullptr || shards.log->is_writer();
  const std::uint64_t queue = job.options.cache ? memory_bytes / 4 : 0;
  return {.ahead_bytes = reads_ahead ? memory_bytes / 2 - queue : 0,
          .queue_bytes = queue};
}

Result<void> Opened::open_stores(Job& job, const Schedule& schedule,
                                 const UnindexedShards* shards,
                                 const RankLimits& mine,
                                 std::size_t most_in_flight,
                                 const Limits& limits, const Env& env) {
  metrics = std::make_shared<Metrics>();
  const Dataset& dataset = schedule.dataset();
  // The driver sends requests, a window bounds them, and a layer retries.
  const std::size_t io_threads = std::max<std::size_t>(
      1, dataset.store_options.io_threads / mine.local_ranks);
  LEAT_TRY(store, open_store_of(dataset,
                                {.max_in_flight = mine.in_flight,
                                 .io_threads = io_threads,
                                 .most_in_flight = most_in_flight,
                                 .derived_bytes = mine.memory_bytes},
                                env, metrics.get()));
  if (dataset.opening) metrics->take_counters(*dataset.opening);
  // It stands below the caches, so they are offered its bytes like any that
  // come from the store.
  if (shards != nullptr) {
    open_ahead(job, *shards, mine.memory_bytes - decoders_bytes(job, mine));
  }
  // Opens the peers, and this node's tiers in front of them.
  return open_cache(job, schedule, limits, env);
}

void Opened::open_ahead(const Job& job, const UnindexedShards& shards,
                        std::uint64_t memory_bytes) {
  const StreamMemory memory = stream_memory(job, shards, memory_bytes);
  auto reading = std::make_unique<ReadAheadStore>(
      std::move(store.store),
      read_ahead_options(shards, store.prefix,
                         {.window_blocks = job.order.window_blocks,
                          .memory_bytes = memory.ahead_bytes,
                          .takes_all_fields = job.options.fields.empty()}));
  ahead = reading.get();
  store.store = std::move(reading);
}

Result<void> Opened::open_cache(Job& job, const Schedule& schedule,
                                const Limits& limits, const Env& env) {
  if (!job.options.cache) return {};
  auto& cache = job.options.cache;
  const std::uint32_t ranks = job.local.world_size;
  const bool is_first = job.local.rank == 0;
  if (!cache->form) {
    // Without a last epoch, nobody knows whether making records pays off.
    cache->form = cache->is_auto && job.options.epochs ? CacheForm::kAuto
                                                       : CacheForm::kEncoded;
  }
  CacheNeeds needs = needs_of(job, schedule);
  LEAT_TRY(cache, choose_cache(*cache, needs, limits, env));
  if (cache->is_auto && is_first) {
    log_info("cache=\"auto\" chose " + describe(*cache));
  }
  job.readers = readers_of(job);
  if (job.readers.count > 1) {
    needs.exchange = exchange_folder(env, store.identity + job.data_digest);
  }
  if (cache->is_shared) {
    needs.dataset = schedule.catalogue()->digest();
    needs.exchange = shared_folder(env, store.identity + needs.dataset.hex());
    shared_cache = std::filesystem::path(needs.exchange).filename();
  }
  if (cache->peer_placement == PeerPlacement::kFrequency) {
    LEAT_TRY(needs.peer_of, place_peers(job, schedule));
  }
  if (cache->placement != Placement::kAny) {
    LEAT_TRY(needs.planned, place_in_tiers(job, schedule));
  }
  if (is_first) {
    for (const std::string& doubt : doubts_about(*cache, limits)) {
      log_warning(doubt);
    }
  }
  sweep_exchange_folders(env, cache_ground.ops);
  LEAT_TRY(store.store,
           wrap_in_cache(store, *cache, needs, cache_ground, metrics.get()));
  if (store.cached == nullptr) return {};
  if (cache->ram_bytes / ranks != 0) tiers.ram_bytes = cache->ram_bytes / ranks;
  if (!cache->disk.empty()) tiers.disk_bytes = *cache->disk_limit_bytes / ranks;
  cache_bytes = store.cached->limit_bytes();
  return {};
}

void Opened::open_quarantine(const Job& job, const Schedule& schedule,
                             const Env& env) {
  const LoaderOptions& options = job.options;
  const bool passes_bad = options.on_error == OnError::kSubstitute;
  const bool is_asked = passes_bad || !options.recorded_filters.empty();
  quarantine = std::make_unique<Quarantine>(QuarantineOptions{
      .path = is_asked ? quarantine_path(store.identity + job.data_digest, env)
                       : "",
      .url = schedule.dataset().url,
      .passes_bad = passes_bad,
      .filters = options.recorded_filters,
      .version_of = [&schedule](SampleId sample) -> std::optional<std::string> {
        const Catalogue* const catalogue = schedule.catalogue();
        if (catalogue == nullptr || sample.value >= catalogue->samples()) {
          return std::nullopt;
        }
        return sample_version(*catalogue, sample).hex();
      }});
  quarantine->look();
  if (job.rank.rank == 0) quarantine->introduce();
}

void Opened::open_memory(const Job& job, const RankLimits& mine,
                         std::size_t most_threads) {
  const std::uint64_t for_decoders = decoders_bytes(job, mine);
  budget = std::make_unique<MemoryBudget>(
      mine.memory_bytes - for_decoders, metrics.get(),
      MemoryShare{.bytes = mine.memory_bytes, .ranks = job.local.world_size});
  if (for_decoders != 0) {
    decode_room = std::make_unique<MemoryBudget>(for_decoders);
  }
  slots = std::make_unique<SlotPool>(budget->capacity_bytes() / 2, metrics);
  for (std::size_t i = 0; i < most_threads; ++i) {
    scratch.push_back(make_scratch(decode_room.get()));
  }
  executor = std::make_unique<Executor>("leat-decode", mine.threads,
                                        metrics.get(), most_threads);
}

void Opened::end() {
  // Closed first: a thread of the store may not yet have returned from
  // submitting the last row, though the row is already filled and delivered.
  store.store.reset();
  executor.reset();
  scratch.clear();
  slots.reset();
}

ThreadTimes Opened::thread_times(const Job& job) const {
  const Executor::Work work = executor->work();
  ThreadTimes times{.busy = work.busy, .cpu = work.cpu};
  for (const OpSpec& op : job.options.ops) {
    if (op.function != nullptr) times.locked += op.function->waited_for_lock();
  }
  return times;
}

RunContext context_over(const Job& job, Opened& opened, DecodedForm* decoded,
                        const Catalogue& catalogue,
                        const std::vector<DeliveredField>& fields,
                        std::shared_ptr<const BlockMap> blocks,
                        MemoryBudget& budget) {
  Store& from = *opened.store.store;
  const bool has_pieces =
      blocks != nullptr && job.reads_pieces(catalogue.layout());
  return RunContext{
      .store = from,
      .prefix = opened.store.prefix,
      .catalogue = catalogue,
      .fields = fields,
      .pieces = has_pieces ? blocks : nullptr,
      .windows = has_windows(job.order.shuffle) ? blocks : nullptr,
      .executor = *opened.executor,
      .budget = budget,
      .slots = *opened.slots,
      .metrics = *opened.metrics,
      .scratch = opened.scratch,
      .shapes = opened.shapes,
      .part_bytes = opened.part_bytes,
      .excluded = opened.quarantine->samples(),
      .said_no_room = &opened.said_no_room,
      .said_wrong_bytes = &opened.said_wrong_bytes,
      .can_read_alone =
          piece_bytes_of(catalogue) == BlockMap::kDefaultPieceBytes,
      .decoded = decoded,
      .locality = job.locality(),
      .readers = job.readers,
      .seed = job.options.seed,
      .draws_by_position = job.order.shuffle == Shuffle::kDrawn,
      .on_error = job.options.on_error,
      .keeps_samples = job.options.keeps_samples,
      .has_hashes = job.options.hashes,
      .checks_etags = etags_apply(catalogue, from),
      .has_checksums = catalogue.has_checksums()};
}

std::shared_ptr<const ShardHomes> shard_homes_of(
    const Job& job, const Catalogue& catalogue,
    std::shared_ptr<const BlockMap> blocks, std::uint64_t first_shard) {
  if (blocks == nullptr || !job.deals_by_shard(catalogue.layout())) {
    return nullptr;
  }
  return std::make_shared<const ShardHomes>(catalogue, std::move(blocks),
                                            first_shard, job.rank.world_size);
}

}  // namespace leat
