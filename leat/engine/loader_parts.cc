// The first epoch over shards that nobody has indexed: one run after the other,
// each over a part of the dataset whose members are known. A part is read
// through the stream's store, which has most of it already.

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "leat/engine/loader_machine.h"

namespace leat {
namespace {

/// A part and what a run over it borrows.
struct PartGround {
  StreamPart part;
  std::vector<DeliveredField> fields;
  std::unique_ptr<RunContext> context;
  std::unique_ptr<EpochRun> run;  // Last: it goes before the rest.
};

}  // namespace

Result<void> Loader::Machine::open_stream(const Env& env) {
  // Half for what is read ahead, by who scans; what a run needs comes from the
  // other.
  const bool reads_ahead =
      unindexed->log == nullptr || unindexed->log->is_writer();
  const std::uint64_t ahead = reads_ahead ? share.memory_bytes / 2 : 0;
  LEAT_TRY(stream_memory, budget->reserve(share.memory_bytes - ahead, {}));
  part_budget =
      std::make_unique<MemoryBudget>(share.memory_bytes - ahead, metrics.get());
  stream = std::make_unique<ShardStream>(
      store, *std::move(unindexed),
      StreamOptions{.window_blocks = order.window_blocks,
                    .memory_bytes = ahead,
                    .takes_all_fields = options.fields.empty()},
      env);
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
  LEAT_TRY(ground->fields, choose_fields(options.ops, catalogue.fields(),
                                         {.names = options.fields,
                                          .with_ids = options.ids,
                                          .with_valid = options.pad}));
  const auto cut = std::make_shared<BlockMap>(BlockMap::build(catalogue));
  ground->context = std::make_unique<RunContext>(context_over(
      stream->store(), catalogue, ground->fields, cut, *part_budget));
  ground->context->first_sample = ground->part.first_sample;
  ground->context->first_step = steps_of_parts;
  OrderOptions of_part = order;
  of_part.first_block = ground->part.first_block;
  // What does not fill a step, the next part begins with.
  LEAT_TRY(const Steps steps,
           Steps::make({.samples = ground->part.end,
                        .start = from - ground->part.first_sample,
                        .global_batch = global_batch,
                        .rank = rank,
                        .tail = ground->part.is_last ? tail : Tail::kDrop}));
  ground->run = std::make_unique<EpochRun>(
      *ground->context, epoch,
      EpochOrder(catalogue.samples(), of_part, cut, epoch), steps,
      PlanLimits{});
  epoch_of_parts = epoch;
  has_last_part = ground->part.is_last;
  steps_of_parts += steps.count();
  if (steps.count() != 0) {
    next_part =
        ground->part.first_sample + steps.position_after(steps.count() - 1);
  }
  return std::shared_ptr<EpochRun>(ground, ground->run.get());
}

bool Loader::Machine::leave_part() {
  if (!is_in_parts) return false;
  const bool has_next = next_run != nullptr && next_run->epoch() == epoch;
  if (!has_next && has_last_part) return false;
  const RunRequests requests = run->requests();
  of_earlier_parts.sent += requests.sent;
  of_earlier_parts.retried += requests.retried;
  of_earlier_parts.bytes += requests.bytes;
  run = has_next ? std::move(next_run) : nullptr;
  next_run.reset();
  return true;
}

void Loader::Machine::leave_parts() {
  stream->take_rest();
  stream_memory.release();
  is_in_parts = false;
}

void Loader::Machine::count_scan_wait() {
  if (!waits_for_shards) return;
  waits_for_shards = false;
  const TimePoint now = SteadyClock().now();
  if (is_begun && waiting_since) {
    count_wait(now - *waiting_since);
    stats.back().stalls[Stall::kStorage] += now - *waiting_since;
  }
  waiting_since = now;
}

RunRequests Loader::Machine::requests_of_parts() const {
  // First: a run counts a read as sent before it is answered.
  const ReadAheadStore::Counts ahead = stream->counts();
  RunRequests all = of_earlier_parts;
  for (const EpochRun* part : {run.get(), next_run.get()}) {
    if (part == nullptr || part->epoch() != epoch_of_parts) continue;
    const RunRequests requests = part->requests();
    all.sent += requests.sent;
    all.retried += requests.retried;
    all.bytes += requests.bytes;
  }
  all.sent = all.sent - ahead.answered + ahead.sent;
  all.bytes = all.bytes - ahead.answered_bytes + ahead.sent_bytes;
  return all;
}

}  // namespace leat
