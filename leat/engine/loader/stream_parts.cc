#include "leat/engine/loader/stream_parts.h"

#include <utility>
#include <vector>

namespace leat {
namespace {

/// A part, and what a run over it borrows.
struct PartGround {
  StreamPart part;
  std::vector<DeliveredField> fields;
  std::unique_ptr<RunContext> context;
  std::unique_ptr<EpochRun> run;  // Last: it goes before the rest.
};

}  // namespace

Result<std::unique_ptr<StreamParts>> StreamParts::open(
    const Job& job, Opened& opened, CacheFormChoice& form,
    UnindexedShards shards, std::uint64_t memory_bytes, const Env& env) {
  std::unique_ptr<StreamParts> parts(new StreamParts(job, opened, form));
  const StreamMemory memory = stream_memory(job, shards, memory_bytes);
  const std::uint64_t for_runs =
      memory_bytes - memory.ahead_bytes - memory.queue_bytes;
  if (opened.store.cached != nullptr) {
    set_least_cache_queue(opened.store, memory.queue_bytes);
  }
  LEAT_TRY(parts->held_,
           opened.budget->reserve(for_runs + memory.queue_bytes, {}));
  parts->budget_ = std::make_unique<MemoryBudget>(
      for_runs, opened.metrics.get(), opened.budget->share());
  parts->stream_ = std::make_unique<ShardStream>(
      *opened.ahead, opened.store, std::move(shards),
      StreamOptions{.window_blocks = job.order.window_blocks,
                    .memory_bytes = memory.ahead_bytes,
                    .takes_all_fields = job.options.fields.empty()},
      env);
  return parts;
}

Result<std::optional<StreamPart>> StreamParts::take(
    std::uint64_t from, std::uint64_t global_batch) {
  return stream_->take(from, global_batch);
}

Result<std::shared_ptr<EpochRun>> StreamParts::start(StreamPart part,
                                                     const Schedule& schedule,
                                                     std::uint64_t epoch,
                                                     std::uint64_t from) {
  auto ground = std::make_shared<PartGround>();
  ground->part = std::move(part);
  const Catalogue& catalogue = *ground->part.catalogue;
  LEAT_TRY(ground->fields, schedule.fields_of(catalogue));
  LEAT_TRY_VOID(form_.open(ground->fields, schedule));
  const auto blocks = std::make_shared<BlockMap>(BlockMap::build(catalogue));
  ground->context = std::make_unique<RunContext>(
      context_over(job_, opened_, form_.decoded(), catalogue, ground->fields,
                   blocks, *budget_));
  ground->context->first_sample = ground->part.first_sample;
  ground->context->first_step = steps_;
  ground->context->homes =
      shard_homes_of(job_, catalogue, blocks, ground->part.first_shard);
  OrderOptions order = job_.order;
  order.first_block = ground->part.first_block;
  // The next part begins with the samples that did not fill a step.
  LEAT_TRY(
      const Steps steps,
      Steps::make({.samples = ground->part.end,
                   .start = from - ground->part.first_sample,
                   .global_batch = schedule.global_batch(),
                   .rank = job_.rank,
                   .tail = ground->part.is_last ? job_.tail : Tail::kDrop}));
  LEAT_TRY(auto next, next_use_of(ground->part, blocks, schedule, epoch, from));
  ground->run = std::make_unique<EpochRun>(
      *ground->context,
      EpochPlanOptions{
          .epoch = epoch,
          .order = EpochOrder(catalogue.samples(), order, blocks, epoch),
          .steps = steps,
          .next_use = std::move(next)},
      PlanLimits{});
  epoch_ = epoch;
  has_last_ = ground->part.is_last;
  steps_ += steps.count();
  if (steps.count() != 0) {
    next_position_ =
        ground->part.first_sample + steps.position_after(steps.count() - 1);
  }
  return std::shared_ptr<EpochRun>(ground, ground->run.get());
}

// Later parts change nothing: a stream's windows stay where they are, and time
// is told without the number of samples.
Result<std::optional<NextUse>> StreamParts::next_use_of(
    const StreamPart& part, const std::shared_ptr<const BlockMap>& blocks,
    const Schedule& schedule, std::uint64_t epoch, std::uint64_t from) const {
  if (part.is_last || !job_.options.cache) {
    return schedule.next_use(epoch, from);
  }
  NextUseOptions in_part = schedule.next_use_options(epoch, from);
  in_part.samples = kEpochTime;
  in_part.tail = Tail::kDrop;
  in_part.order.first_block = part.first_block;
  in_part.blocks = blocks;
  in_part.first_sample = part.first_sample;
  LEAT_TRY(NextUse next, NextUse::make(in_part));
  return std::optional<NextUse>(std::move(next));
}

RunRequests StreamParts::requests(const EpochRun* run,
                                  const EpochRun* next) const {
  // Reads this counter first, because a run counts a read as sent
  // before it is answered.
  const ReadAheadStore::Counts counts = opened_.ahead->counts();
  RunRequests all = of_earlier_;
  for (const EpochRun* part : {run, next}) {
    if (part == nullptr || part->epoch() != epoch_) continue;
    all += part->requests();
  }
  all.sent = all.sent - counts.answered + counts.sent;
  all.bytes = all.bytes - counts.answered_bytes + counts.sent_bytes;
  return all;
}

void StreamParts::leave() {
  stream_->take_rest();
  give_memory_back();
}

void StreamParts::give_memory_back() {
  if (opened_.store.cached != nullptr) set_least_cache_queue(opened_.store, 0);
  held_.release();
}

}  // namespace leat
