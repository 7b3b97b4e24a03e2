#include "leat/engine/loader_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <mutex>
#include <utility>

#include "leat/base/units.h"
#include "leat/cache/cached_store.h"
#include "leat/engine/read_sizes.h"
#include "leat/index/build.h"
#include "leat/plan/wait_model.h"
#include "leat/runtime/launcher.h"
#include "leat/runtime/log.h"

namespace leat {
namespace {

constexpr std::uint64_t kMostChosenMemory = 2 * kGiB;
constexpr std::uint64_t kLeastMember = 1024;

Error refuse(std::string message) {
  return Error(ErrorCode::kInvalidArgument, std::move(message));
}

Result<std::uint64_t> global_batch_of(const LoaderOptions& options, Rank rank) {
  if ((options.global_batch_size == 0) == (options.batch_size == 0)) {
    return refuse(
        options.batch_size == 0
            ? "the batch size is 0; give global_batch_size=, or batch_size= "
              "for "
              "each rank"
            : "both global_batch_size= and batch_size= are given; give one");
  }
  if (options.batch_size != 0) {
    if (options.batch_size > Steps::kMax / rank.world_size) {
      return refuse("batch_size= is past any that can be");
    }
    return options.batch_size * rank.world_size;
  }
  return options.global_batch_size;
}

Tail tail_of(const LoaderOptions& options) {
  if (options.pad) return Tail::kPad;
  const bool drops =
      options.drop_last.value_or(options.shuffle != ShuffleChoice::kNone);
  return drops ? Tail::kDrop : Tail::kKeep;
}

/// The user's options win. Then the launcher is asked only which processes
/// share the node, and need not know: Lightning's leaves variables out.
Result<Launch> launch_of(const LoaderOptions& options, const Env& env) {
  Result<Launch> launch = read_launch(env);
  if (!options.rank) return launch;
  return Launch{.rank = *options.rank,
                .local = launch ? launch->local : Launch{}.local};
}

}  // namespace

Result<void> Loader::Machine::configure_batches(const Env& env) {
  LEAT_TRY(const Launch launch, launch_of(options, env));
  rank = launch.rank;
  if (rank.world_size == 0 || rank.rank >= rank.world_size) {
    return refuse(fmt::format("rank={} of world_size={}; ranks count from 0",
                              rank.rank, rank.world_size));
  }
  LEAT_TRY(global_batch, global_batch_of(options, rank));
  if (dataset.catalogue != nullptr) LEAT_TRY_VOID(check_world_size());
  if (options.pad && options.drop_last.value_or(false)) {
    return refuse("pad=True keeps the last step, drop_last=True drops it");
  }
  if (options.shuffle_window == 0) {
    return refuse("shuffle_window=0; a window has at least one piece");
  }
  if (options.memory_bytes == std::uint64_t{0}) {
    return refuse("memory=0; it holds at least one batch, such as \"2GiB\"");
  }
  tail = tail_of(options);
  return check_steps(0);
}

void Loader::Machine::configure_order() {
  if (options.weights != nullptr || options.is_given) {
    configure_drawn();
    return;
  }
  const bool has_shards = dataset.catalogue == nullptr ||
                          dataset.catalogue->layout() == Layout::kShards;
  order.seed = options.seed;
  order.window_blocks = options.shuffle_window;
  switch (options.shuffle) {
    case ShuffleChoice::kNone:
      order.shuffle = Shuffle::kNone;
      break;
    case ShuffleChoice::kAuto:
      order.shuffle =
          usual_shuffle(has_shards ? Layout::kShards : Layout::kObjects);
      break;
    case ShuffleChoice::kFull:
      order.shuffle = Shuffle::kFull;
      break;
    case ShuffleChoice::kBlock:
      order.shuffle = Shuffle::kBlock;
      break;
    case ShuffleChoice::kStream:
      order.shuffle = Shuffle::kStream;
      break;
  }
}

/// The digest that a state goes by: for a stream it is there before the
/// catalogue is.
Hash128 Loader::Machine::digest_of_data() const {
  if (unindexed) return listing_digest(unindexed->objects);
  return order.shuffle == Shuffle::kStream ? listing_digest(*dataset.catalogue)
                                           : dataset.catalogue->digest();
}

void Loader::Machine::open_blocks() {
  const bool has_pieces = dataset.catalogue->layout() == Layout::kShards &&
                          order.shuffle != Shuffle::kFull &&
                          order.shuffle != Shuffle::kDrawn;
  if (has_windows(order.shuffle) || has_pieces) {
    blocks = std::make_shared<BlockMap>(BlockMap::build(*dataset.catalogue));
  }
}

RunContext Loader::Machine::context_over(
    Store& from, const Catalogue& catalogue,
    const std::vector<DeliveredField>& with,
    std::shared_ptr<const BlockMap> cut, MemoryBudget& within) {
  return RunContext{.store = from,
                    .prefix = store.prefix,
                    .catalogue = catalogue,
                    .fields = with,
                    .pieces = cut != nullptr && reads_pieces(catalogue.layout(),
                                                             rank.world_size)
                                  ? cut
                                  : nullptr,
                    .windows = has_windows(order.shuffle) ? cut : nullptr,
                    .executor = *executor,
                    .budget = within,
                    .slots = *slots,
                    .metrics = *metrics,
                    .scratch = scratch,
                    .shapes = shapes,
                    .part_bytes = part_bytes,
                    .decoded = decoded.get(),
                    .locality = locality(),
                    .readers = readers,
                    .seed = options.seed,
                    .draws_by_position = order.shuffle == Shuffle::kDrawn,
                    .on_error = options.on_error,
                    .has_hashes = options.hashes,
                    .checks_etags = etags_apply(catalogue, from)};
}

Result<void> Loader::Machine::open_catalogue() {
  LEAT_TRY(fields,
           choose_fields(options.ops, dataset.catalogue->fields(),
                         {.names = options.fields,
                          .with_ids = options.ids,
                          .has_valid = options.pad,
                          .has_batches_of_one = global_batch == rank.world_size,
                          .has_collate = options.has_collate}));
  open_blocks();
  return {};
}

void Loader::Machine::open_context() {
  context = std::make_unique<RunContext>(
      context_over(*store.store, *dataset.catalogue, fields, blocks, *budget));
  context->cached = store.cached;
  // A drawn sample may come often, so it has no one turn to tell.
  if (store.cached != nullptr && order.shuffle != Shuffle::kDrawn) {
    context->board = store.cached->board();
  }
}

std::uint64_t Loader::Machine::bytes_of_data() const {
  std::uint64_t bytes = 0;
  if (unindexed) {
    for (const ObjectInfo& shard : unindexed->objects.data) {
      bytes += shard.size_bytes;
    }
    return bytes;
  }
  for (std::uint64_t i = 0; i < dataset.catalogue->objects(); ++i) {
    const auto object = ObjectIndex{static_cast<std::uint32_t>(i)};
    bytes += dataset.catalogue->object(object).size_bytes;
  }
  return bytes;
}

CacheNeeds Loader::Machine::cache_needs(const Launch& launch) const {
  CacheNeeds needs{.data_bytes = data_bytes,
                   .local_ranks = launch.local.world_size,
                   .may_decode = options.cache->form != CacheForm::kEncoded};
  if (unindexed) {
    // More than there are: a member takes a header and a block at least.
    needs.samples = data_bytes / kLeastMember + 1;
    return needs;
  }
  needs.samples = dataset.catalogue->samples();
  needs.fields = std::max<std::uint64_t>(
      1, std::ranges::count_if(fields, [](const DeliveredField& field) {
        return field.is_fetched();
      }));
  needs.may_decode = needs.may_decode && DecodedForm::is_for(fields);
  return needs;
}

Result<void> Loader::Machine::open_cache(const Limits& limits,
                                         const Launch& launch, const Env& env) {
  if (!options.cache) return {};
  if (!options.cache->form) {
    // Without an end nobody knows whether what records cost comes back.
    options.cache->form = options.cache->is_auto && options.epochs
                              ? CacheForm::kAuto
                              : CacheForm::kEncoded;
  }
  CacheNeeds needs = cache_needs(launch);
  LEAT_TRY(options.cache, choose_cache(*options.cache, needs, limits, env));
  if (options.cache->is_auto && launch.local.rank == 0) {
    log_info("cache=\"auto\" chose " + describe(*options.cache));
  }
  // Any local rank may want the records that one of them keeps.
  const Rank local = launch.local;
  readers = {.first = rank.rank, .count = 1, .world_size = rank.world_size};
  if (local.world_size > 1 && rank.rank >= local.rank &&
      rank.rank - local.rank + local.world_size <= rank.world_size) {
    readers.first = rank.rank - local.rank;
    readers.count = local.world_size;
    needs.exchange = exchange_folder(env, store.identity + data_digest);
  }
  if (options.cache->is_shared) {
    needs.dataset = dataset.catalogue->digest();
    needs.exchange = shared_folder(env, store.identity + needs.dataset.hex());
    shared_cache = std::filesystem::path(needs.exchange).filename();
  }
  if (options.cache->peer_placement == PeerPlacement::kFrequency) {
    const MutexLock lock(mutex);
    LEAT_TRY(needs.peer_of, place_peers(local.world_size));
  }
  if (options.cache->placement != Placement::kAny) {
    const MutexLock lock(mutex);
    LEAT_TRY(needs.planned, place_in_tiers(local.world_size));
  }
  if (launch.local.rank == 0) {
    for (const std::string& doubt : doubts_about(*options.cache, limits)) {
      log_warning(doubt);
    }
  }
  sweep_exchange_folders(env, cache_ground.ops);
  LEAT_TRY(store.store, wrap_in_cache(store, *options.cache, needs,
                                      cache_ground, metrics.get()));
  if (store.cached == nullptr) return {};
  if (options.cache->ram_bytes / local.world_size != 0) {
    most_cache.ram_bytes = options.cache->ram_bytes / local.world_size;
  }
  if (!options.cache->disk.empty()) {
    most_cache.disk_bytes = *options.cache->disk_limit_bytes / local.world_size;
  }
  cache_bytes = store.cached->limit_bytes();
  return {};
}

RecordCache* Loader::Machine::records() const { return store.cached; }

Result<void> Loader::Machine::choose_what_is_open(const Limits& limits) {
  const auto check = [](const char* name, std::size_t given,
                        std::size_t most) -> Result<void> {
    if (given <= most) return {};
    return refuse(fmt::format("{}={}; it is 1 to {}, or left out to be chosen",
                              name, given, most));
  };
  LEAT_TRY_VOID(check("threads", options.threads, kMostThreads));
  LEAT_TRY_VOID(check("max_in_flight", options.max_in_flight, kMostInFlight));
  share.threads_were_asked = options.threads != 0;
  if (options.threads == 0) options.threads = limits.threads();
  share.in_flight_was_asked = options.max_in_flight != 0;
  if (options.max_in_flight == 0) options.max_in_flight = kDefaultInFlight;
  if (!options.memory_bytes) {
    // The rest is for the model, the framework and the user's own data.
    options.memory_bytes = std::min(kMostChosenMemory, limits.memory_bytes / 4);
  }
  return {};
}

// Threads may outnumber the cores if they wait for something else than a core,
// in a function of the user's. Requests may be more than 128 if latency is long
// and samples are small. If no agent divides the cores among jobs, and no other
// rank of this job is on them, more threads get more of the cores that other
// programs use, too.
void Loader::Machine::choose_most(const Limits& limits) {
  constexpr std::size_t kTimes = 4;
  constexpr std::size_t kTimesBesideOthers = 2;
  most_share = share;
  const bool calls_users = std::ranges::any_of(
      options.ops, [](const OpSpec& op) { return op.function != nullptr; });
  if (!share.threads_were_asked && calls_users) most_share.threads *= kTimes;
  if (!share.in_flight_was_asked) {
    const std::uint64_t files = limits.open_files / 2 / share.local_ranks;
    most_share.in_flight = std::max<std::uint64_t>(
        share.in_flight,
        std::min<std::uint64_t>(kTimes * share.in_flight, files));
  }
  usual = share;
  most_alone = most_share;
  if (!share.threads_were_asked && share.local_ranks == 1) {
    most_alone.threads =
        std::max(most_share.threads, kTimesBesideOthers * share.threads);
  }
}

/// Once a process, however many loaders it makes.
void Loader::Machine::tell_shares(std::uint32_t ranks, std::size_t threads,
                                  std::uint64_t memory) const {
  static std::once_flag is_told;
  std::call_once(is_told, [&] {
    log_info(fmt::format(
        "{} ranks on this node share {} threads, {} requests in flight and {} "
        "of memory: {}, {} and {} each",
        ranks, options.threads, options.max_in_flight,
        format_bytes(*options.memory_bytes), threads, share.in_flight,
        format_bytes(memory)));
  });
}

Result<void> Loader::Machine::configure(const Env& env) {
  {
    const MutexLock lock(mutex);
    configure_order();
    LEAT_TRY_VOID(configure_batches(env));
  }
  LEAT_TRY_VOID(check_locality());
  LEAT_TRY_VOID(check_drawn());
  LEAT_TRY_VOID(check_first_within());
  LEAT_TRY_VOID(check_fetch_ahead());
  data_digest = digest_of_data().hex();
  if (options.cache || options.tune.is_on) data_bytes = bytes_of_data();
  if (dataset.catalogue != nullptr) LEAT_TRY_VOID(open_catalogue());
  LEAT_TRY(const Launch launch, launch_of(options, env));
  const std::uint32_t ranks = launch.local.world_size;
  const Limits limits = effective_limits();
  LEAT_TRY_VOID(choose_what_is_open(limits));
  const std::size_t threads = std::max<std::size_t>(1, options.threads / ranks);
  const std::uint64_t memory = *options.memory_bytes / ranks;
  share.local_ranks = ranks;
  share.in_flight = std::max<std::size_t>(1, options.max_in_flight / ranks);
  share.threads = threads;
  share.cores = limits.threads();
  share.memory_bytes = memory;
  choose_most(limits);

  metrics = std::make_shared<Metrics>();
  const std::size_t io_threads =
      std::max<std::size_t>(1, dataset.store_options.io_threads / ranks);
  LEAT_TRY(store,
           open_store_of(dataset,
                         {share.in_flight, io_threads, most_share.in_flight},
                         env, metrics.get()));
  LEAT_TRY(pricing, read_pricing(env, store.provider));
  energy = std::make_unique<EnergyCount>();
  if (dataset.opening) metrics->take_counters(*dataset.opening);
  if (unindexed) open_ahead();
  LEAT_TRY_VOID(open_cache(limits, launch, env));
  if (dataset.catalogue != nullptr) LEAT_TRY_VOID(open_form(fields));
  {
    const MutexLock lock(mutex);
    LEAT_TRY_VOID(plan_locality(ranks));
  }
  LEAT_TRY_VOID(open_trace());
  budget = std::make_unique<MemoryBudget>(memory, metrics.get());
  slots = std::make_unique<SlotPool>(memory / 2, metrics);
  for (std::size_t i = 0; i < most_alone.threads; ++i)
    scratch.push_back(make_scratch());
  executor = std::make_unique<Executor>("leat-decode", threads, metrics.get(),
                                        most_alone.threads);
  {
    const MutexLock lock(mutex);
    if (dataset.catalogue == nullptr) {
      LEAT_TRY_VOID(open_stream(env));
    } else {
      open_context();
      begin_lookahead();
    }
  }
  if (rank.rank == 0 && ranks > 1) tell_shares(ranks, threads, memory);
  return begin_tuning(env);
}

void Loader::Machine::tear_down() {
  context.reset();
  // First: a thread of its own may not yet have returned from submitting the
  // last row, though that has been filled and delivered.
  store.store.reset();
  executor.reset();
  scratch.clear();
  slots.reset();
  trace.reset();
}

}  // namespace leat
