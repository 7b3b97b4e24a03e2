#include "leat/engine/loader.h"

#include <fmt/format.h>

#include <utility>

#include "leat/cache/cached_store.h"
#include "leat/engine/loader_machine.h"
#include "leat/engine/loader_state.h"

namespace leat {
namespace {

constexpr Nanoseconds kForever = std::chrono::hours(24);

std::uint64_t nonempty_steps(const Steps& steps) {
  std::uint64_t count = steps.count();
  // Only a kept tail can leave a rank without a sample.
  if (count > 0 && steps.slice(count - 1).size() == 0) --count;
  return count;
}

}  // namespace

Loader::Loader(std::unique_ptr<Machine> machine)
    : machine_(std::move(machine)) {}

Loader::~Loader() {
  if (machine_ != nullptr && getpid() != machine_->pid) {
    // The threads are not in this process: ending them would hang.
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
  if (auto* dataset = std::get_if<Dataset>(&source)) {
    machine->dataset = std::move(*dataset);
  } else {
    auto& shards = std::get<UnindexedShards>(source);
    machine->dataset.url = shards.url;
    machine->dataset.store_options = shards.store_options;
    machine->dataset.opening = shards.opening;
    machine->unindexed = std::move(shards);
  }
  machine->options = std::move(options);
  LEAT_TRY_VOID(machine->configure(env));
  std::unique_ptr<Loader> loader(new Loader(std::move(machine)));
  loader->machine_->open_link(*loader, env);
  return loader;
}

Result<Loader::Iteration> Loader::begin() {
  const TimePoint entered = SteadyClock().now();
  Machine& m = *machine_;
  LEAT_TRY(const Machine::Visit visit, m.enter());
  std::shared_ptr<EpochRun> old;  // Ends outside the lock.
  std::shared_ptr<EpochRun> unused;
  const MutexLock lock(m.mutex);
  LEAT_TRY_VOID(m.check_open());
  if (m.has_delivered && !m.has_ended) {  // It was left in the middle.
    m.tell_substituted();
    old = m.jump_to(m.epoch + 1, 0);
  } else if (m.has_ended || m.failure) {
    old = m.jump_to(m.epoch, m.position);
  }
  LEAT_TRY_VOID(m.open_run(unused));
  m.waiting_since.reset();
  m.begun = entered;
  m.threads_at_begin = m.thread_times();
  m.is_begun = true;
  m.stats.push_back({.epoch = m.epoch});
  m.look_ahead();
  const TimePoint now = SteadyClock().now();
  m.count_wait(now, {Stall::kHandover, now - entered});
  return Iteration{++m.iteration};
}

Result<Loader::Next> Loader::next_within(Iteration iteration,
                                         Nanoseconds timeout) {
  Machine& m = *machine_;
  LEAT_TRY(const Machine::Visit visit, m.enter());
  std::shared_ptr<EpochRun> run;
  std::shared_ptr<EpochRun> unused;
  {
    const MutexLock lock(m.mutex);
    LEAT_TRY_VOID(m.check_current(iteration));
    if (m.failure) return *m.failure;
    if (m.has_ended) return Next::end();
    if (Result<void> opened = m.open_run(unused); !opened) {
      m.failure = opened.error();
      return *m.failure;
    }
    m.begin_wait(m.run.get());
    run = m.run;
  }
  unused.reset();
  if (run == nullptr) {
    m.stream->wait_within(timeout);
    return Next::not_yet();
  }
  (void)run->wait_within(timeout);
  const MutexLock lock(m.mutex);
  LEAT_TRY_VOID(m.check_current(iteration));
  // Another thread may have taken what this one waited for.
  if (m.failure) return *m.failure;
  if (m.has_ended) return Next::end();
  if (m.run != run) return Next::not_yet();
  m.begin_wait(run.get());
  const EpochRun::State state = run->wait_within(Nanoseconds(0));
  m.plan_ahead();
  m.count_requests();
  if (state == EpochRun::State::kNotYet) return Next::not_yet();
  if (state == EpochRun::State::kEnd) {
    if (m.leave_part()) return Next::not_yet();
    m.end_epoch();
    return Next::end();
  }
  const std::shared_ptr<BatchWork> work = run->take();
  m.deliver(*work);
  if (work->error) {
    m.failure = *work->error;
    return *work->error;
  }
  work->hand_over();
  m.watch_kept(work->batch);
  return Next(std::move(work->batch));
}

Result<Loader::Next> Loader::next(Iteration iteration) {
  while (true) {
    LEAT_TRY(Next next, next_within(iteration, kForever));
    if (!next.is_not_yet()) return next;
  }
}

Result<Loader::Next> Loader::peek_within(Nanoseconds timeout) {
  Machine& m = *machine_;
  LEAT_TRY(const Machine::Visit visit, m.enter());
  std::shared_ptr<EpochRun> run;
  std::shared_ptr<EpochRun> unused;
  {
    const MutexLock lock(m.mutex);
    LEAT_TRY_VOID(m.check_open());
    LEAT_TRY_VOID(m.open_run(unused));
    run = m.run;
  }
  unused.reset();  // The batch may need the part of the budget that it holds.
  if (run == nullptr) {
    m.stream->wait_within(timeout);
    return Next::not_yet();
  }
  (void)run->wait_within(timeout);
  const MutexLock lock(m.mutex);  // Nobody takes the batch meanwhile.
  LEAT_TRY_VOID(m.check_open());
  if (run != m.run) return Next::not_yet();
  const EpochRun::State state = run->wait_within(Nanoseconds(0));
  if (state == EpochRun::State::kNotYet) return Next::not_yet();
  if (state == EpochRun::State::kEnd) return Next::end();
  const BatchWork& head = run->head();
  if (head.error) return *head.error;
  return Next(copy_of(head.batch, *m.slots));
}

Result<void> Loader::set_epoch(std::uint64_t epoch) {
  Machine& m = *machine_;
  LEAT_TRY(const Machine::Visit visit, m.enter());
  std::shared_ptr<EpochRun> old;
  std::shared_ptr<EpochRun> old_next;
  const MutexLock lock(m.mutex);
  LEAT_TRY_VOID(m.check_open());
  if (m.epoch == epoch && !m.has_delivered && !m.has_ended &&
      (m.is_resuming || m.position == 0)) {
    return {};  // It is there already.
  }
  m.is_resuming = false;
  if (m.next_run != nullptr && m.next_run->epoch() != epoch) {
    old_next = std::move(m.next_run);
  }
  old = m.jump_to(epoch, 0);
  return {};
}

std::string Loader::state() const {
  const Machine& m = *machine_;
  const MutexLock lock(m.mutex);
  LoaderState state = m.state_now();
  // With nothing left of it the epoch is over: the next one is what goes on.
  if (m.position != 0 && m.dataset.catalogue != nullptr &&
      m.samples_in(m.epoch)) {
    const Result<Steps> left = m.steps_from(m.position);
    if (!left || left->count() == 0) {
      ++state.epoch;
      state.position = 0;
      state.left_behind.reset();
    }
  }
  return to_json(state);
}

Result<void> Loader::load_state(std::string_view json) {
  Machine& m = *machine_;
  LEAT_TRY(const Machine::Visit visit, m.enter());
  std::shared_ptr<EpochRun> old;
  std::shared_ptr<EpochRun> old_next;
  const MutexLock lock(m.mutex);
  LEAT_TRY_VOID(m.check_open());
  LEAT_TRY(const LoaderState state, parse_state(json));
  const LoaderState mine = m.state_now();
  LEAT_TRY_VOID(check_compatible(state, mine));
  LEAT_TRY_VOID(m.check_left_behind(state));
  if (m.options.batch_size != 0) {
    LEAT_TRY_VOID(m.check_placed_for(state));
    // Given for each rank: the state's global batch is what goes on.
    const std::uint64_t before =
        std::exchange(m.global_batch, state.global_batch_size);
    const Result<void> fits = m.check_steps(0);
    if (m.dataset.catalogue != nullptr && !fits) {
      m.global_batch = before;
      return Error(fits.error()).while_doing("going on from the state");
    }
    if (before != m.global_batch) m.is_another_plan = true;
    m.begin_lookahead();
  }
  if (m.dataset.catalogue != nullptr) {
    LEAT_TRY_VOID(m.check_steps(state.position));
  }
  old_next = std::move(m.next_run);
  old = m.jump_to(state.epoch, state.position);
  m.left_behind = state.left_behind.value_or(std::vector<std::uint64_t>());
  m.resumed_order.clear();
  if (state.drawn && state.position != 0) m.resumed_order = state.drawn->digest;
  m.is_resuming = true;
  return {};
}

std::optional<std::uint64_t> Loader::length() const {
  const MutexLock lock(machine_->mutex);
  if (!machine_->samples_in(machine_->epoch)) return std::nullopt;
  const Result<Steps> steps = machine_->steps_from(0);
  return steps ? nonempty_steps(*steps) : 0;
}

std::optional<std::uint64_t> Loader::remaining() const {
  const Machine& m = *machine_;
  const MutexLock lock(m.mutex);
  if (m.has_ended) return 0;
  if (!m.samples_in(m.epoch)) return std::nullopt;
  const Result<Steps> steps = m.steps_from(m.position);
  return steps ? nonempty_steps(*steps) : 0;
}

Dataset Loader::dataset() const {
  const MutexLock lock(machine_->mutex);
  return machine_->dataset;
}

const std::optional<std::string>& Loader::provider() const {
  return machine_->store.provider;
}
const LoaderOptions& Loader::options() const { return machine_->options; }
Rank Loader::rank() const { return machine_->rank; }

std::vector<std::string> Loader::field_names() const {
  const MutexLock lock(machine_->mutex);
  std::vector<std::string> names;
  for (const DeliveredField& field : machine_->fields) {
    names.push_back(field.name);
  }
  return names;
}

std::vector<EpochStats> Loader::stats() const {
  Machine& m = *machine_;
  const MutexLock lock(m.mutex);
  m.count_requests();
  return m.stats;
}

RecentStalls Loader::recent() const {
  const Machine& m = *machine_;
  const MutexLock lock(m.mutex);
  return m.rolling.recent(SteadyClock().now());
}

std::shared_ptr<const Metrics> Loader::metrics() const {
  machine_->keep_ledger();
  return machine_->metrics;
}

std::string Loader::ledger() const { return machine_->ledger(); }

void Loader::settle_cache() {
  const Result<Machine::Visit> visit = machine_->enter();
  if (visit && machine_->store.cached != nullptr) {
    machine_->store.cached->drain();
  }
}

void Loader::close() {
  Machine& m = *machine_;
  if (getpid() != m.pid) return;  // The threads are not in this process.
  const MutexLock closing(m.closing);
  m.link.reset();  // It calls us.
  if (m.tuning != nullptr) m.tuning->end();
  std::shared_ptr<EpochRun> run;
  std::shared_ptr<EpochRun> next_run;
  std::unique_ptr<ShardStream> stream;
  {
    const MutexLock lock(m.mutex);
    m.count_requests();
    m.is_closed = true;
    run = std::move(m.run);
    next_run = std::move(m.next_run);
  }
  if (run != nullptr) run->stop();  // Wakes who waits in it.
  if (next_run != nullptr) next_run->stop();
  if (m.stream != nullptr) m.stream->stop();
  {
    MutexLock lock(m.mutex);
    while (m.visits != 0) m.left.wait(lock);
    stream = std::move(m.stream);
  }
  run.reset();
  next_run.reset();
  stream.reset();
  m.tear_down();
}

}  // namespace leat
