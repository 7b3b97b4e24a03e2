#include "leat/engine/loader/machine.h"

#include <algorithm>
#include <chrono>

#include "leat/base/errors.h"
#include "leat/engine/caches.h"
#include "leat/engine/loader/placement.h"

namespace leat {
namespace {

/// Tested without the lock: at the fork another thread may have held it.
Result<void> check_made_here(pid_t made_in) {
  if (getpid() == made_in) return {};
  return invalid(
      "this loader was made before a fork and its threads are not in this "
      "process; make one here, or start workers with spawn");
}

/// The entry of a batch that begins at the position `from`.
OrderLogBatch logged(BatchWork& work, std::uint64_t from) {
  OrderLogBatch entry{.epoch = work.epoch,
                      .from = from,
                      .to = work.position_after,
                      .ids = work.batch.ids};
  for (std::size_t row = 0; row < work.size(); ++row) {
    const SampleWork& sample = work.sample(row);
    if (!sample.is_valid) entry.padding.push_back(row);
    if (sample.excluded) entry.substitutes.push_back(row);
  }
  return entry;
}

}  // namespace

Loader::Machine::~Machine() {
  if (control != nullptr) control->end();  // Its threads call into this loader.
}

Loader::Machine::Visit::~Visit() {
  if (machine_ == nullptr) return;
  const MutexLock lock(machine_->mutex);
  --machine_->visits;
  machine_->left.notify_all();
}

Result<void> check_process(const Loader& loader) {
  return check_made_here(loader.machine_->pid);
}

Result<Loader::Machine::Visit> Loader::Machine::enter() {
  LEAT_TRY_VOID(check_made_here(pid));
  const MutexLock lock(mutex);
  LEAT_TRY_VOID(check_open());
  ++visits;
  return Visit(this);
}

Result<void> Loader::Machine::check_open() const {
  if (is_closed) return invalid("the loader is closed; make another one");
  return {};
}

Result<void> Loader::Machine::check_current(Iteration mine) const {
  LEAT_TRY_VOID(check_open());
  if (mine.number == position.iteration) return {};
  return invalid(
      "this iterator was ended by a later one, set_epoch() or "
      "load_state_dict(); a loader has one at a time");
}

LoaderState Loader::Machine::state_now() const {
  // One rank's list may be empty while another's is not.
  const bool is_reordered =
      position.at != 0 &&
      (!position.left_behind.empty() ||
       (job.first_within() != 0 && job.rank.world_size > 1));
  return {.epoch = position.epoch,
          .position = position.at,
          .seed = job.order.seed,
          .global_batch_size = schedule->told_batch(),
          .samples = schedule->samples(),
          .catalogue = job.data_digest,
          .shuffle = job.order.shuffle,
          .shuffle_window = job.order.window_blocks,
          .drawn = drawn_state(job, position.epoch, position.at,
                               position.resumed_order),
          .left_behind =
              is_reordered ? std::optional(position.left_behind) : std::nullopt,
          .rank = job.rank};
}

Result<void> Loader::Machine::check_left_behind(
    const LoaderState& state) const {
  if (!state.left_behind || state.left_behind->empty()) return {};
  if (!runs->can_go_back()) {
    return invalid(
        "the state has samples that were overtaken (first_within=), which this "
        "loader could not go back to: it reads pieces of shards, or deals by "
        "locality");
  }
  const bool is_batch_of_rank = job.options.batch_size != 0;
  LEAT_TRY(
      const Steps steps,
      Steps::make({.samples = schedule->samples().value_or(0),
                   .start = state.position,
                   .global_batch = is_batch_of_rank ? state.global_batch_size
                                                    : schedule->global_batch(),
                   .rank = job.rank,
                   .tail = job.tail}));
  LEAT_TRY_VOID(schedule->ready_first(steps, *state.left_behind));
  return {};
}

Result<void> Loader::Machine::take_batch_of(const LoaderState& state) {
  LEAT_TRY_VOID(check_placed_for(job, *schedule, state));
  const std::uint64_t before = schedule->told_batch();
  schedule->set_global_batch(state.global_batch_size);
  if (schedule->catalogue() != nullptr) {
    Result<void> fits = schedule->check_steps(position.epoch, 0);
    if (fits) fits = schedule->check_steps(state.epoch, state.position);
    if (!fits) {
      schedule->set_global_batch(before);
      return Error(fits.error()).while_doing("going on from the state");
    }
  }
  if (before != state.global_batch_size) runs->expect_another_plan();
  runs->begin_lookahead();
  return {};
}

Runs::Left Loader::Machine::jump_to(std::uint64_t to_epoch,
                                    std::uint64_t to_position) {
  runs->count_requests();
  account->end_scan_wait();
  Runs::Left old = runs->leave(position, to_epoch, to_position);
  position.jump_to(to_epoch, to_position);
  account->leave_epoch();
  return old;
}

void Loader::Machine::begin_wait(EpochRun* from) {
  if (from != nullptr) {
    account->end_scan_wait();
  } else {
    account->begin_scan_wait();
  }
  account->begin_wait(control->now().in_flight, [from] {
    return from == nullptr ||
           from->wait_within(Nanoseconds(0)) == EpochRun::State::kNotYet;
  });
}

void Loader::Machine::expect_start() {
  if (order_log != nullptr) order_log->expect_start();
}

void Loader::Machine::deliver(BatchWork& work) {
  const auto step = account->deliver(work);
  if (work.error) return;
  if (order_log != nullptr) {
    order_log->add(logged(work, position.at));
  }
  position.deliver(work.position_after, work.left_behind);
  runs->took(work, step);
}

void Loader::Machine::end_epoch() {
  if (order_log != nullptr) {
    order_log->add(OrderLogEnd{.epoch = position.epoch,
                               .at = position.at,
                               .samples = schedule->samples().value_or(0)});
  }
  const EpochStats at =
      account->end_epoch(control->now(), opened.thread_times(job));
  costs->keep_energy(SteadyClock().now());
  form->judge(at);
  runs->end_epoch();
  position.end_epoch(runs->current()->epoch() + 1);
}

LoaderTotals Loader::Machine::totals() {
  LoaderTotals totals;
  add_counts(*opened.metrics, totals);
  const Result<Visit> visit = enter();
  if (visit) {  // Otherwise its threads may be gone.
    const Executor::Work work = opened.executor->work();
    totals.tasks = work.tasks;
    totals.busy = work.busy;
    totals.cpu = work.cpu;
  }
  totals.elapsed = SteadyClock().now() - opened_at;
  account->add_to(totals);
  costs->add_to(totals);
  form->add_to(totals);
  costs->keep_energy(SteadyClock().now());
  const RankLimits now = control->now();
  totals.threads = now.threads;
  totals.in_flight = now.in_flight;
  // A cache finds its records by their range, and the indexer of shards reads
  // parts as they come.
  const bool are_parts_fixed = job.options.cache || opened.ahead != nullptr;
  totals.part_bytes = are_parts_fixed ? 0 : opened.part_bytes.now();
  const MutexLock lock(mutex);
  totals.lookahead = runs->lookahead();
  return totals;
}

Observation Loader::Machine::observe() {
  const LoaderTotals now = totals();
  Observation seen{
      .at_seconds = to_seconds(now.elapsed),
      .samples = now.samples,
      .batches = now.batches,
      .epochs = now.epochs,
      .wait_seconds = to_seconds(now.wait + now.waiting),
      .storage_wait_seconds = to_seconds(now.stalls[Stall::kStorage] +
                                         now.stalls[Stall::kThrottled]),
      .memory_wait_seconds = to_seconds(now.stalls[Stall::kMemory]),
      .training_seconds = to_seconds(now.training),
      .reads = now.reads,
      .read_bytes = now.read_bytes,
      .read_seconds = to_seconds(now.read_time),
      .failed_reads = now.failed_reads,
      .late_reads = now.hedges,
      .tasks = now.tasks,
      .busy_seconds = to_seconds(now.busy),
      .cpu_seconds = to_seconds(now.cpu),
      .cache_hits = now.ram_hits + now.disk_hits + now.peer_hits,
      .cache_misses = now.cache_misses,
      .threads = now.threads,
      .in_flight = now.in_flight,
      .lookahead = now.lookahead,
      .part_bytes = now.part_bytes,
      .data_bytes = job.data_bytes};
  control->add_bounds(seen);
  if (opened.store.pace->holds(SteadyClock().now())) {
    seen.most_reads_per_second =
        opened.store.pace->requests_per_second().value_or(0);
  }
  return seen;
}

void Loader::Machine::apply_settings() {
  const Result<Visit> visit = enter();
  if (!visit) return;
  control->apply([this](const Allowance::InForce& now) {
    const Settings& settings = now.settings;
    {
      const MutexLock lock(mutex);
      if (settings.part_bytes != 0) {
        opened.part_bytes.set(settings.part_bytes);
      }
      opened.executor->set_active(settings.threads);
      runs->ask_for_at_least(
          std::max<std::uint64_t>(2 * settings.in_flight, settings.lookahead));
    }
    // Without the lock: both may send, and an answer may come immediately.
    opened.store.limited->set_bytes_per_second(now.bytes_per_second);
    opened.store.limited->set_window(settings.in_flight);
    if (now.ram) {
      set_cache_share(opened.store, CacheLevel::kRam, now.ram->bound_bytes);
    }
    if (now.disk) {
      set_cache_share(opened.store, CacheLevel::kDisk, now.disk->bound_bytes);
    }
  });
}

}  // namespace leat
