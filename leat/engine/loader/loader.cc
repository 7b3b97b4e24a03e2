#include "leat/engine/loader/loader.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "leat/base/buffer.h"
#include "leat/base/errors.h"
#include "leat/cache/cached_store.h"
#include "leat/engine/loader/machine.h"
#include "leat/engine/loader/pace_decisions.h"
#include "leat/engine/loader/undelivered.h"
#include "leat/runtime/heap.h"

namespace leat {
namespace {

constexpr Nanoseconds kForever = std::chrono::hours(24);

/// The sampler gives another order than that of the state: where it follows the
/// size of steps, that may be the reason.
Error another_order(const Position& at, std::uint64_t global_batch) {
  if (at.resumed_batch == global_batch) {
    return invalid(
        "the state is at position {} of epoch {}, and the sampler gives "
        "another order for that epoch than it gave before; seed its generator "
        "the same",
        at.at, at.epoch);
  }
  return invalid(
      "the state is at position {} of epoch {} with a global batch of {}, but "
      "this loader has one of {}, with which the sampler gives another order "
      "for that epoch than it gave before; give global_batch_size={}, and if "
      "the sampler has a generator of its own, seed that the same",
      at.at, at.epoch, at.resumed_batch, global_batch, at.resumed_batch);
}

}  // namespace

Loader::Loader(std::unique_ptr<Machine> machine)
    : machine_(std::move(machine)) {}

Loader::~Loader() {
  if (machine_ != nullptr && getpid() != machine_->pid) {
    // The threads do not exist in this process: joining them would hang.
    (void)machine_.release();
    return;
  }
  close();
}

Result<std::unique_ptr<Loader>> Loader::open(Dataset dataset,
                                             LoaderOptions options,
                                             const Env& env) {
  return open(LoaderSource(std::move(dataset)), std::move(options), env);
}

Result<std::unique_ptr<Loader>> Loader::open(LoaderSource source,
                                             LoaderOptions options,
                                             const Env& env) {
  auto machine = std::make_unique<Machine>();
  LEAT_TRY_VOID(machine->open(std::move(source), std::move(options), env));
  std::unique_ptr<Loader> loader(new Loader(std::move(machine)));
  loader->machine_->join_agent(env);
  return loader;
}

Result<Loader::Iteration> Loader::begin() {
  const TimePoint entered = SteadyClock().now();
  Machine& m = *machine_;
  LEAT_TRY(const Machine::Visit visit, m.enter());
  Runs::Left old;  // Destroyed outside the lock.
  std::shared_ptr<EpochRun> unused;
  const MutexLock lock(m.mutex);
  LEAT_TRY_VOID(m.check_open());
  if (m.position.is_within_epoch()) {  // The epoch was left before its end.
    m.account->tell_left_early();
    old = m.jump_to(m.position.epoch + 1, 0);
  } else if (m.position.has_ended || m.position.failure) {
    old = m.jump_to(m.position.epoch, m.position.at);
  }
  LEAT_TRY_VOID(
      check_next_of_mix(m.job, *m.schedule, m.position.epoch, m.position.at));
  m.opened.quarantine->look();  // Other ranks may have found some.
  LEAT_TRY_VOID(m.runs->open(m.position, unused));
  m.account->begin_epoch(m.position.epoch, entered,
                         m.opened.thread_times(m.job));
  m.runs->look_ahead();
  return Iteration{++m.position.iteration};
}

Result<Loader::Next> Loader::next_within(Iteration iteration,
                                         Nanoseconds timeout) {
  Machine& m = *machine_;
  LEAT_TRY(const Machine::Visit visit, m.enter());
  LEAT_TRY(const bool may_take, wait_for_next(*this, iteration, timeout));
  if (!may_take) return Next::not_yet();
  std::shared_ptr<EpochRun> run;  // Destroyed outside the lock.
  const MutexLock lock(m.mutex);
  LEAT_TRY_VOID(m.check_current(iteration));
  // Another thread may have taken the batch that this one waited for.
  if (m.position.failure) return *m.position.failure;
  if (m.position.has_ended) return Next::end();
  run = m.runs->current();
  return run == nullptr ? Next::not_yet() : m.take_from(*run);
}

Result<Loader::Next> Loader::Machine::take_from(EpochRun& run) {
  begin_wait(&run);
  const EpochRun::State state = run.wait_within(Nanoseconds(0));
  runs->plan_ahead();
  runs->count_requests();
  if (state == EpochRun::State::kNotYet) return Next::not_yet();
  if (state == EpochRun::State::kEnd) {
    if (runs->leave_part()) return Next::not_yet();
    end_epoch();
    return Next::end();
  }
  BatchPlace place = position.place();
  const std::shared_ptr<BatchWork> work = run.take();
  deliver(*work);
  if (work->error) {
    position.failure = *work->error;
    return *work->error;
  }
  work->hand_over();
  kept.add(work->batch);
  return Next(std::move(work->batch), std::move(place));
}

Result<Loader::Next> Loader::next(Iteration iteration) {
  while (true) {
    LEAT_TRY(Next next, next_within(iteration, kForever));
    if (!next.is_not_yet()) return next;
  }
}

Result<Loader::Next> Loader::peek_within(Nanoseconds timeout, Memory memory) {
  Machine& m = *machine_;
  LEAT_TRY(const Machine::Visit visit, m.enter());
  std::shared_ptr<EpochRun> run;
  std::shared_ptr<EpochRun> unused;
  {
    const MutexLock lock(m.mutex);
    LEAT_TRY_VOID(m.check_open());
    if (m.position.failure) return *m.position.failure;
    LEAT_TRY_VOID(m.runs->open(m.position, unused));
    run = m.runs->current();
  }
  unused.reset();  // The batch may need the memory that it holds.
  const bool is_onlooker = memory == Memory::kOfTheBatch;
  if (run == nullptr) {
    m.parts->wait_within(timeout, is_onlooker);
    return Next::not_yet();
  }
  (void)run->wait_within(timeout, is_onlooker ? EpochRun::Asker::kOnlooker
                                              : EpochRun::Asker::kTraining);
  const MutexLock lock(m.mutex);  // Nobody else takes the batch meanwhile.
  LEAT_TRY_VOID(m.check_open());
  // The run has gone past the batch that failed, and the position has not.
  if (m.position.failure) return *m.position.failure;
  if (run != m.runs->current()) return Next::not_yet();
  const EpochRun::State state =
      run->wait_within(Nanoseconds(0), EpochRun::Asker::kOnlooker);
  if (state == EpochRun::State::kNotYet) return Next::not_yet();
  if (state == EpochRun::State::kEnd) {
    m.runs->plan_ahead();
    m.runs->count_requests();
    return m.runs->leave_part() ? Next::not_yet() : Next::end();
  }
  const BatchWork& head = run->head();
  if (head.error) return *head.error;
  return Next(memory == Memory::kOfTheBatch
                  ? Batch(head.batch)
                  : copy_of(head.batch, *m.opened.slots),
              m.position.place());
}

bool Loader::is_current(Iteration iteration) const {
  Machine& m = *machine_;
  const MutexLock lock(m.mutex);
  return m.check_current(iteration).has_value();
}

Result<void> Loader::set_epoch(std::uint64_t epoch) {
  Machine& m = *machine_;
  LEAT_TRY(const Machine::Visit visit, m.enter());
  Runs::Left old;
  std::shared_ptr<EpochRun> old_next;
  const MutexLock lock(m.mutex);
  LEAT_TRY_VOID(m.check_open());
  if (m.position.epoch == epoch && !m.position.has_delivered &&
      !m.position.has_ended && (m.position.is_resuming || m.position.at == 0)) {
    return {};  // The batch is already there.
  }
  m.position.is_resuming = false;
  m.expect_start();
  old_next = m.runs->drop_next_unless(epoch);
  old = m.jump_to(epoch, 0);
  return {};
}

Result<void> Loader::give_order(std::uint64_t epoch, GivenEpoch given,
                                bool starts) {
  Machine& m = *machine_;
  LEAT_TRY(const Machine::Visit visit, m.enter());
  Runs::Left old;  // Destroyed outside the lock.
  std::shared_ptr<EpochRun> old_next;
  const MutexLock lock(m.mutex);
  LEAT_TRY_VOID(m.check_open());
  GivenOrder& told = *m.job.told_order;
  const std::uint64_t first = given.first;
  // Ranks share its memory evenly, though not its samples.
  const std::uint64_t world = m.job.rank.world_size;
  const std::uint64_t largest =
      (given.largest_step() + world - 1) / world * world;
  LEAT_TRY_VOID(told.give(epoch, std::move(given)));
  const bool is_here = epoch == m.position.epoch;
  if (is_here && !m.position.resumed_order.empty() &&
      told.digest(epoch)->hex() != m.position.resumed_order) {
    return another_order(m.position, m.schedule->told_batch());
  }
  LEAT_TRY_VOID(m.schedule->check_steps_of(
      epoch, starts ? first : (is_here ? m.position.at : 0)));
  if (largest > m.schedule->global_batch()) {
    m.schedule->expect_step_of(largest);
    m.runs->begin_lookahead();
  }
  old_next = m.runs->drop_next_of(epoch);
  if (starts) {
    m.expect_start();
    old = m.jump_to(epoch, first);
  } else if (is_here) {
    old = m.jump_to(epoch, m.position.at);
  }
  told.forget_before(m.position.epoch);
  return {};
}

void Loader::expect_order_of(std::uint64_t samples) {
  machine_->job.told_order->expect_size(samples);
}

std::uint64_t Loader::next_epoch() const {
  const Machine& m = *machine_;
  const MutexLock lock(m.mutex);
  return m.position.is_within_epoch() ? m.position.epoch + 1 : m.position.epoch;
}

std::string Loader::state() const {
  const Machine& m = *machine_;
  const MutexLock lock(m.mutex);
  LoaderState state = m.state_now();
  // If nothing is left of the epoch, it is over, and the next one begins.
  if (m.position.at != 0 && m.schedule->catalogue() != nullptr &&
      m.schedule->samples_in(m.position.epoch)) {
    const Result<Steps> left =
        m.schedule->steps_of(m.position.epoch, m.position.at);
    if (!left || left->count() == 0) {
      ++state.epoch;
      state.position = 0;
      state.left_behind.reset();
      if (m.job.mixed != nullptr) {
        state.drawn = drawn_state(m.job, state.epoch, 0, "");
      }
    }
  }
  return to_json(state);
}

Result<void> Loader::load_state(std::string_view json) {
  Machine& m = *machine_;
  LEAT_TRY(const Machine::Visit visit, m.enter());
  Runs::Left old;
  std::shared_ptr<EpochRun> old_next;
  const MutexLock lock(m.mutex);
  LEAT_TRY_VOID(m.check_open());
  LEAT_TRY(const LoaderState state, parse_state(json));
  const EarlierData earlier = m.schedule->dataset().kept_as.empty()
                                  ? EarlierData::kNoneIsKept
                                  : EarlierData::kSomeIsKept;
  LEAT_TRY_VOID(check_compatible(state, m.state_now(), earlier));
  LEAT_TRY_VOID(m.check_left_behind(state));
  if (m.job.options.batch_size != 0) {
    LEAT_TRY_VOID(m.take_batch_of(state));
  } else if (m.schedule->catalogue() != nullptr) {
    LEAT_TRY_VOID(m.schedule->check_steps(state.epoch, state.position));
  }
  m.expect_start();
  old_next = m.runs->drop_next();
  old = m.jump_to(state.epoch, state.position);
  m.position.left_behind =
      state.left_behind.value_or(std::vector<std::uint64_t>());
  m.position.resumed_order.clear();
  if (state.drawn && state.position != 0) {
    m.position.resumed_order = state.drawn->digest;
    m.position.resumed_batch = state.global_batch_size;
  }
  m.position.is_resuming = true;
  return {};
}

std::optional<std::uint64_t> Loader::length() const {
  const MutexLock lock(machine_->mutex);
  return machine_->schedule->batches_of(machine_->position.epoch, 0);
}

std::optional<std::uint64_t> Loader::remaining() const {
  const Machine& m = *machine_;
  const MutexLock lock(m.mutex);
  if (m.position.has_ended) return 0;
  return m.schedule->batches_of(m.position.epoch, m.position.at);
}

Dataset Loader::dataset() const {
  const MutexLock lock(machine_->mutex);
  return machine_->schedule->dataset();
}

std::string Loader::dealing() const {
  const MutexLock lock(machine_->mutex);
  return machine_->schedule->dealing_in_words();
}

const std::optional<std::string>& Loader::provider() const {
  return machine_->opened.store.provider;
}
const LoaderOptions& Loader::options() const { return machine_->job.options; }
Rank Loader::rank() const { return machine_->job.rank; }

std::vector<std::string> Loader::field_names() const {
  const MutexLock lock(machine_->mutex);
  std::vector<std::string> names;
  for (const DeliveredField& field : machine_->schedule->fields()) {
    names.push_back(field.name);
  }
  return names;
}

std::vector<EpochStats> Loader::stats() const {
  {
    const MutexLock lock(machine_->mutex);
    machine_->runs->count_requests();
  }
  return machine_->account->stats();
}

RecentStalls Loader::recent() const { return machine_->account->recent(); }

std::vector<StepWait> Loader::take_waits() {
  return machine_->account->take_waits();
}

LoaderTotals Loader::totals() const { return machine_->totals(); }

void Loader::set_share(const Share& wanted) {
  machine_->control->allow(wanted);
  machine_->apply_settings();
}

Share Loader::most_share() const { return machine_->control->most(); }

std::optional<Pace> Loader::pace() const { return machine_->control->pace(); }

void Loader::set_pace_elsewhere(const Pace& pace) {
  machine_->control->set_pace_elsewhere(pace);
}

std::vector<Decision> Loader::decisions() const {
  std::vector<Decision> all = machine_->control->decisions();
  if (auto form = machine_->form->decision()) all.push_back(*std::move(form));
  std::ranges::move(pace_decisions(machine_->opened.store.pace->episodes(),
                                   machine_->opened_at),
                    std::back_inserter(all));
  std::ranges::stable_sort(all, {}, &Decision::at_seconds);
  return all;
}

std::optional<Explanation> Loader::explanation() const {
  return machine_->control->explanation();
}

std::shared_ptr<const Metrics> Loader::metrics() const {
  machine_->costs->price_metrics();
  return machine_->opened.metrics;
}

std::string Loader::ledger() const { return machine_->costs->ledger(); }

void Loader::settle_cache() {
  const Result<Machine::Visit> visit = machine_->enter();
  if (visit && machine_->opened.store.cached != nullptr) {
    machine_->opened.store.cached->drain();
  }
}

bool Loader::is_in_own_function() const {
  const Executor* const here = Executor::here();
  return here != nullptr && here == machine_->opened.executor.get();
}

void Loader::close() {
  Machine& m = *machine_;
  if (getpid() != m.pid) return;  // The threads do not exist in this process.
  const MutexLock closing(m.closing);
  m.control->end();  // Its threads call this loader.
  Runs::Left old;
  std::optional<Error> failure;  // It may keep much of a program's.
  {
    const MutexLock lock(m.mutex);
    failure = std::exchange(m.position.failure, std::nullopt);
    m.runs->count_requests();
    m.is_closed = true;
    old = m.runs->end();
  }
  if (old.run != nullptr) old.run->stop();  // Wakes the threads waiting in it.
  if (old.next != nullptr) old.next->stop();
  if (m.parts != nullptr) m.parts->stop();
  {
    MutexLock lock(m.mutex);
    while (m.visits != 0) m.left.wait(lock);
  }
  old = {};
  if (m.parts != nullptr) m.parts->end_scan();  // The scan uses the store.
  m.opened.end();
  m.parts.reset();  // By now the store's threads have given back their memory.
  Buffer::give_back_kept();
  HeapTrim::of_process().trim(SteadyClock().now());
  m.account->close_trace();
  if (m.order_log != nullptr) m.order_log->close();
}

}  // namespace leat
