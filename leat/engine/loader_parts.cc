// The first epoch over shards that nobody has indexed: one run after the other,
// each over a part of the dataset whose members are known. The store that
// they are read from has most of them already.

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "leat/engine/loader_machine.h"

namespace leat {
namespace {

/// A part and the values that a run over it borrows.
struct PartGround {
  StreamPart part;
  std::vector<DeliveredField> fields;
  std::unique_ptr<RunContext> context;
  std::unique_ptr<EpochRun> run;  // Last: it goes before the rest.
};

}  // namespace

// Half of the memory is for runs. The other half is for the rank that scans, to
// read ahead; with a cache, half of that is for records yet to be written:
// pieces that are there already come all at once.
StreamOptions Loader::Machine::stream_options() const {
  const bool reads_ahead =
      unindexed->log == nullptr || unindexed->log->is_writer();
  const std::uint64_t half = share.memory_bytes / 2;
  return {.window_blocks = order.window_blocks,
          .memory_bytes = reads_ahead ? half - stream_queue_bytes() : 0,
          .takes_all_fields = options.fields.empty()};
}

std::uint64_t Loader::Machine::stream_queue_bytes() const {
  return options.cache ? share.memory_bytes / 4 : 0;
}

// Below the caches: so they are offered what comes from there like anything
// that comes from the store.
void Loader::Machine::open_ahead() {
  auto reading = std::make_unique<ReadAheadStore>(
      std::move(store.store),
      read_ahead_options(*unindexed, store.prefix, stream_options()));
  ahead = reading.get();
  store.store = std::move(reading);
}

Result<void> Loader::Machine::open_stream(const Env& env) {
  const StreamOptions how = stream_options();
  const std::uint64_t queue = stream_queue_bytes();
  const std::uint64_t memory = share.memory_bytes - how.memory_bytes - queue;
  if (store.cached != nullptr) set_least_cache_queue(store, queue);
  LEAT_TRY(stream_memory, budget->reserve(memory + queue, {}));
  part_budget = std::make_unique<MemoryBudget>(memory, metrics.get());
  stream = std::make_unique<ShardStream>(*ahead, store, *std::move(unindexed),
                                         how, env);
  unindexed.reset();
  is_in_parts = true;
  return {};
}

Result<void> Loader::Machine::adopt_catalogue() {
  if (stream == nullptr || dataset.catalogue != nullptr) return {};
  LEAT_TRY(const std::shared_ptr<const Catalogue> made, stream->catalogue());
  if (made == nullptr) return {};
  dataset.catalogue = made;
  dataset.catalogue_source = std::string(to_string(CatalogueSource::kBuilt));
  Result<void> opened = check_world_size();
  if (opened) opened = open_catalogue();
  if (opened) opened = open_form(fields);
  if (opened) opened = plan_locality(share.local_ranks);
  if (!opened) {
    dataset.catalogue.reset();
    return opened;
  }
  open_context();
  begin_lookahead();
  return {};
}

Result<std::shared_ptr<EpochRun>> Loader::Machine::start_part(
    std::uint64_t from) {
  LEAT_TRY(std::optional<StreamPart> part, stream->take(from, global_batch));
  if (!part) return std::shared_ptr<EpochRun>();
  if (part->is_last) LEAT_TRY_VOID(adopt_catalogue());
  auto ground = std::make_shared<PartGround>();
  ground->part = *std::move(part);
  const Catalogue& catalogue = *ground->part.catalogue;
  LEAT_TRY(ground->fields,
           choose_fields(options.ops, catalogue.fields(),
                         {.names = options.fields,
                          .with_ids = options.ids,
                          .has_valid = options.pad,
                          .has_batches_of_one = global_batch == rank.world_size,
                          .has_collate = options.has_collate}));
  LEAT_TRY_VOID(open_form(ground->fields));
  const auto cut = std::make_shared<BlockMap>(BlockMap::build(catalogue));
  ground->context = std::make_unique<RunContext>(
      context_over(*store.store, catalogue, ground->fields, cut, *part_budget));
  ground->context->first_sample = ground->part.first_sample;
  ground->context->first_step = steps_of_parts;
  OrderOptions of_part = order;
  of_part.first_block = ground->part.first_block;
  // The next part begins with the samples that do not fill a step.
  LEAT_TRY(const Steps steps,
           Steps::make({.samples = ground->part.end,
                        .start = from - ground->part.first_sample,
                        .global_batch = global_batch,
                        .rank = rank,
                        .tail = ground->part.is_last ? tail : Tail::kDrop}));
  LEAT_TRY(auto next, next_use_of(ground->part, cut, from));
  ground->run = std::make_unique<EpochRun>(
      *ground->context, epoch,
      EpochOrder(catalogue.samples(), of_part, cut, epoch), steps, PlanLimits{},
      std::move(next));
  epoch_of_parts = epoch;
  has_last_part = ground->part.is_last;
  steps_of_parts += steps.count();
  if (steps.count() != 0) {
    next_part =
        ground->part.first_sample + steps.position_after(steps.count() - 1);
  }
  return std::shared_ptr<EpochRun>(ground, ground->run.get());
}

// Samples behind the part change nothing: the windows of a stream stay where
// they are, and time is told without the number of samples.
Result<std::optional<NextUse>> Loader::Machine::next_use_of(
    const StreamPart& part, const std::shared_ptr<const BlockMap>& cut,
    std::uint64_t from) const {
  if (part.is_last || !options.cache) return next_use(epoch, from);
  NextUseOptions in_part = next_use_options(epoch, from);
  in_part.samples = kEpochTime;
  in_part.tail = Tail::kDrop;
  in_part.order.first_block = part.first_block;
  in_part.blocks = cut;
  in_part.first_sample = part.first_sample;
  LEAT_TRY(NextUse next, NextUse::make(in_part));
  return std::optional<NextUse>(std::move(next));
}

bool Loader::Machine::leave_part() {
  if (!is_in_parts) return false;
  const bool has_next = next_run != nullptr && next_run->epoch() == epoch;
  if (!has_next && has_last_part) return false;
  of_earlier_parts += run->requests();
  run = has_next ? std::move(next_run) : nullptr;
  next_run.reset();
  return true;
}

void Loader::Machine::leave_parts() {
  stream->take_rest();
  give_stream_memory_back();
  is_in_parts = false;
}

void Loader::Machine::give_stream_memory_back() {
  if (store.cached != nullptr) set_least_cache_queue(store, 0);
  stream_memory.release();
}

void Loader::Machine::count_scan_wait() {
  if (!waits_for_shards) return;
  waits_for_shards = false;
  const TimePoint now = SteadyClock().now();
  if (is_begun && waiting_since) {
    count_wait(now, {Stall::kStorage, now - *waiting_since});
  }
  waiting_since = now;
}

RunRequests Loader::Machine::requests_of_parts() const {
  // First: a run counts a read as sent before it is answered.
  const ReadAheadStore::Counts counts = ahead->counts();
  RunRequests all = of_earlier_parts;
  for (const EpochRun* part : {run.get(), next_run.get()}) {
    if (part == nullptr || part->epoch() != epoch_of_parts) continue;
    all += part->requests();
  }
  all.sent = all.sent - counts.answered + counts.sent;
  all.bytes = all.bytes - counts.answered_bytes + counts.sent_bytes;
  return all;
}

}  // namespace leat
