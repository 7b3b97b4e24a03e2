// Checks who may call a loader, and holds its runs: the run of its epoch, from
// its position on, and the one after it.

#include <memory>
#include <optional>
#include <utility>

#include "leat/engine/loader_machine.h"
#include "leat/engine/read_sizes.h"

namespace leat {
namespace {

Error refuse(std::string message) {
  return Error(ErrorCode::kInvalidArgument, std::move(message));
}

}  // namespace

Loader::Machine::Visit::~Visit() {
  if (machine_ == nullptr) return;
  const MutexLock lock(machine_->mutex);
  --machine_->visits;
  machine_->left.notify_all();
}

Result<Loader::Machine::Visit> Loader::Machine::enter() {
  // Before the lock: at the fork somebody may have held it.
  if (getpid() != pid) {
    return refuse(
        "this loader was made before a fork and its threads are not in this "
        "process; make one here, or start workers with spawn");
  }
  const MutexLock lock(mutex);
  LEAT_TRY_VOID(check_open());
  ++visits;
  return Visit(this);
}

Result<void> Loader::Machine::check_open() const {
  if (is_closed) return refuse("the loader is closed; make another one");
  return {};
}

Result<void> Loader::Machine::check_current(Iteration mine) const {
  LEAT_TRY_VOID(check_open());
  if (mine.number == iteration) return {};
  return refuse(
      "this iterator was ended by a later one, set_epoch() or "
      "load_state_dict(); a loader has one at a time");
}

Result<void> Loader::Machine::check_fetch_ahead() const {
  if (!options.fetch_ahead) return {};
  const auto rule = FetchAhead::make(*options.fetch_ahead);
  if (!rule) {
    return Error(rule.error()).while_doing("reading ahead (fetch_ahead=)");
  }
  if (dataset.catalogue == nullptr) {
    return refuse(
        "fetch_ahead= counts samples, and these shards have no index yet; make "
        "one with `leat index`, or leave it out");
  }
  if (order.shuffle != Shuffle::kFull && order.shuffle != Shuffle::kDrawn &&
      reads_pieces(dataset.catalogue->layout(), rank.world_size)) {
    return refuse(
        "fetch_ahead= asks for samples, and one rank reads shards in pieces of "
        "many; give shuffle=\"full\", which reads each by itself, or leave it "
        "out");
  }
  return {};
}

/// Looks as far ahead as training goes; if that has no known end, as far as a
/// sample may have to wait.
NextUseOptions Loader::Machine::next_use_options(std::uint64_t which,
                                                 std::uint64_t from) const {
  // At home, or where it is held, a sample is read in every epoch; elsewhere
  // after a few.
  const RankRun met = locality() != Locality::kNone
                          ? RankRun{.first = 0,
                                    .count = rank.world_size,
                                    .world_size = rank.world_size}
                          : readers;
  const std::uint64_t horizon = which + 2 + 4 * (met.world_size / met.count);
  return {.samples = samples_in(which).value_or(0),
          .dataset_samples = samples().value_or(0),
          .order = order,
          .blocks = blocks,
          .global_batch = global_batch,
          .tail = tail,
          .ranks = met,
          .epoch = which,
          .start = from,
          .end_epoch = options.epochs.value_or(horizon),
          .epoch_time = kEpochTime};
}

Result<std::optional<NextUse>> Loader::Machine::next_use(
    std::uint64_t which, std::uint64_t from) const {
  if (!options.cache) return std::optional<NextUse>();
  LEAT_TRY(NextUse next, NextUse::make(next_use_options(which, from)));
  return std::optional<NextUse>(std::move(next));
}

Result<Steps> Loader::Machine::steps_of(std::uint64_t which,
                                        std::uint64_t from) const {
  const auto drawn = told_order == nullptr ? nullptr : told_order->epoch(which);
  return Steps::make({.samples = samples_in(which).value_or(0),
                      .start = from,
                      .global_batch = global_batch,
                      .rank = rank,
                      .tail = tail},
                     drawn == nullptr ? nullptr : drawn->ends());
}

std::optional<std::uint64_t> Loader::Machine::samples() const {
  if (dataset.catalogue == nullptr) return std::nullopt;
  return dataset.catalogue->samples();
}

LoaderState Loader::Machine::state_now() const {
  // If one rank's list is empty, another's may not be.
  const bool is_reordered =
      position != 0 &&
      (!left_behind.empty() || (first_within() != 0 && rank.world_size > 1));
  return {
      .epoch = epoch,
      .position = position,
      .seed = order.seed,
      .global_batch_size = global_batch,
      .samples = samples(),
      .catalogue = data_digest,
      .shuffle = order.shuffle,
      .shuffle_window = order.window_blocks,
      .drawn = drawn_now(),
      .left_behind = is_reordered ? std::optional(left_behind) : std::nullopt,
      .rank = rank};
}

Result<std::shared_ptr<EpochRun>> Loader::Machine::start(
    std::uint64_t which, std::uint64_t from, PlanLimits limits,
    std::unique_ptr<HolderDealing> dealing,
    const std::vector<std::uint64_t>& behind) const {
  LEAT_TRY_VOID(check_known(which));
  LEAT_TRY(const Steps steps, steps_of(which, from));
  LEAT_TRY(std::optional<NextUse> next, next_use(which, from));
  if (holders && dealing == nullptr) {
    LEAT_TRY(dealing, make_dealing(which));
  }
  LEAT_TRY(std::optional<ReadyFirst> first, ready_first(steps, behind));
  return std::make_shared<EpochRun>(
      *context, which,
      EpochOrder(dataset.catalogue->samples(), order, blocks, which), steps,
      limits, std::move(next), std::move(dealing), std::move(first));
}

Result<void> Loader::Machine::open_run(std::shared_ptr<EpochRun>& unused) {
  if (run != nullptr) return {};
  Result<void> adopted = adopt_catalogue();
  unused = std::move(next_run);
  if (is_in_parts) {
    LEAT_TRY(run, start_part(position));
    return {};
  }
  if (!adopted) return adopted;
  if (dataset.catalogue == nullptr) return {};
  if (unused != nullptr && unused->epoch() == epoch && position == 0) {
    run = std::move(unused);
    run->adopt();
    look_ahead();
    return {};
  }
  LEAT_TRY_VOID(check_known(epoch));
  LEAT_TRY_VOID(begin_plan());
  PlanLimits limits;
  if (lookahead) limits.lookahead = lookahead->samples();
  if (options.fetch_ahead) {
    LEAT_TRY(limits.fetch_ahead, FetchAhead::make(*options.fetch_ahead));
  }
  LEAT_TRY(run, start(epoch, position, limits, nullptr, left_behind));
  look_ahead();
  return {};
}

std::shared_ptr<EpochRun> Loader::Machine::jump_to(std::uint64_t to_epoch,
                                                   std::uint64_t to_position) {
  count_requests();
  count_scan_wait();
  // Nothing was read in vain yet if another epoch begins in its place; but by
  // what caches hold, none can be dealt without the catalogue except the first.
  if (is_in_parts && (stream->has_given() || to_position != 0 ||
                      (deals_to_holders(locality()) && to_epoch != 0))) {
    leave_parts();
  }
  const bool stays = to_epoch == epoch && to_position == position;
  const bool goes_on = to_epoch == epoch + 1 && to_position == 0;
  if (!stays && !goes_on) is_another_plan = true;
  if (!stays) {
    left_behind.clear();
    resumed_order.clear();
  }
  epoch = to_epoch;
  position = to_position;
  is_begun = false;
  has_delivered = false;
  has_ended = false;
  failure.reset();
  waiting_since.reset();
  delivered_at.reset();
  ++iteration;  // Any iterator still alive belongs to the old position.
  return std::exchange(run, nullptr);
}

Result<void> Loader::Machine::begin_plan() {
  if (!std::exchange(is_another_plan, false) || store.cached == nullptr) {
    return {};
  }
  LEAT_TRY(std::optional<NextUse> next, next_use(epoch, position));
  const std::uint64_t end = samples().value_or(0);
  const bool has_homes = locality() == Locality::kSticky;
  begin_cache_plan(
      store, next->time_of(epoch, position),
      [&, now_epoch = epoch, now_position = position](SampleId sample) {
        const std::uint32_t home =
            has_homes ? home_of(sample, readers.world_size) : readers.first;
        if (sample.value >= end || home < readers.first ||
            home - readers.first >= readers.count) {
          return kNever;
        }
        return next->at_or_after(sample, now_epoch, now_position);
      });
  return {};
}

// Once the running epoch has been sent, begins to fetch the next: all of it if
// it is known that there will be one, else at most a window.
void Loader::Machine::plan_ahead() {
  if (options.fetch_ahead) return;  // Its sampler is of one epoch.
  if (next_run != nullptr || run == nullptr || !run->has_planned_all()) return;
  if (is_in_parts && !has_last_part) {
    // An error of the next part is reported when it is its turn.
    if (auto part = start_part(next_part)) {
      next_run = *std::move(part);
    }
    return;
  }
  if (is_in_parts) stream->let_go();
  if (!adopt_catalogue()) return;
  const std::uint64_t next_epoch = run->epoch() + 1;
  if (options.epochs && next_epoch >= *options.epochs) return;
  PlanLimits limits;
  if (!options.epochs) limits.samples = share.in_flight;
  if (lookahead) limits.lookahead = global_batch / rank.world_size;
  if (Result<std::shared_ptr<EpochRun>> started =
          start(next_epoch, 0, limits, run->take_dealing())) {
    next_run = *std::move(started);
  }
  look_ahead();
}

}  // namespace leat
