#include "leat/engine/loader_tuning.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include "leat/base/system_error.h"
#include "leat/engine/loader_machine.h"
#include "leat/runtime/log.h"
#include "leat/runtime/thread_name.h"

namespace leat {
namespace {

// The tuner settles a change for half a second and measures it for longer.
constexpr std::chrono::milliseconds kPeriod(500);

double seconds(Nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

}  // namespace

Result<std::unique_ptr<LoaderTuning>> LoaderTuning::begin(
    Hooks hooks, const std::string& trace) {
  std::FILE* file = nullptr;
  if (!trace.empty()) {
    file = std::fopen(trace.c_str(), "we");
    if (file == nullptr)
      return system_error(errno, "the tuner's trace " + trace);
  }
  return std::unique_ptr<LoaderTuning>(
      new LoaderTuning(std::move(hooks), file));
}

LoaderTuning::LoaderTuning(Hooks hooks, std::FILE* trace)
    : hooks_(std::move(hooks)),
      trace_(trace),
      thread_([this](const std::stop_token& stop) {
        name_this_thread("leat-tuner");
        run(stop);
      }) {}

LoaderTuning::~LoaderTuning() {
  end();
  if (trace_ != nullptr) std::fclose(trace_);
}

void LoaderTuning::end() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
}

void LoaderTuning::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    look();
    MutexLock lock(mutex_);
    stopped_.wait_for(lock, stop, kPeriod, [] { return false; });
  }
}

void LoaderTuning::look() {
  const Observation seen = hooks_.observe();
  if (trace_ != nullptr) write(seen);
  Tuner::Step step;
  {
    const MutexLock lock(mutex_);
    step = tuner_.observe(seen);
  }
  for (const Decision& line : step.lines) {
    log_debug("tuner: " + to_string(line));
  }
  if (!step.lines.empty()) hooks_.apply(step.settings);
}

// Flushed line by line: a forked child has nothing to write once more.
void LoaderTuning::write(const Observation& seen) {
  const std::string line = to_json(seen) + "\n";
  if (std::fwrite(line.data(), 1, line.size(), trace_) != line.size() ||
      std::fflush(trace_) != 0) {
    log_debug("the tuner's trace could not be written");
  }
}

std::vector<Decision> LoaderTuning::decisions() const {
  const MutexLock lock(mutex_);
  return {tuner_.decisions().begin(), tuner_.decisions().end()};
}

std::optional<Explanation> LoaderTuning::explanation() const {
  const MutexLock lock(mutex_);
  return tuner_.explanation();
}

Result<void> Loader::Machine::begin_tuning(const Env& env) {
  const std::optional<std::string> told = value_of(env, "LEAT_TUNE");
  if (told && *told != "on" && *told != "off") {
    return Error(ErrorCode::kInvalidArgument,
                 "LEAT_TUNE=" + *told + "; it is on or off");
  }
  if (!options.tune.is_on || told == "off") return {};
  {
    const MutexLock lock(mutex);
    chosen = {.threads = options.tune.start_threads != 0
                             ? options.tune.start_threads
                             : usual.threads,
              .in_flight = options.tune.start_in_flight != 0
                               ? options.tune.start_in_flight
                               : usual.in_flight};
  }
  apply_settings();
  LEAT_TRY(tuning, LoaderTuning::begin({.observe = [this] { return observe(); },
                                        .apply =
                                            [this](const Settings& settings) {
                                              {
                                                const MutexLock lock(mutex);
                                                chosen = settings;
                                              }
                                              apply_settings();
                                            }},
                                       options.tune.trace.empty()
                                           ? ""
                                           : of_this_rank(options.tune.trace)));
  return {};
}

Observation Loader::Machine::observe() {
  const LoaderRates now = rates();
  Observation seen{
      .at_seconds = seconds(now.elapsed),
      .samples = now.samples,
      .batches = now.batches,
      .epochs = now.epochs,
      .wait_seconds = seconds(now.wait + now.waiting),
      .storage_wait_seconds =
          seconds(now.stalls[Stall::kStorage] + now.stalls[Stall::kThrottled]),
      .memory_wait_seconds = seconds(now.stalls[Stall::kMemory]),
      .training_seconds = seconds(now.training),
      .reads = now.reads,
      .read_bytes = now.read_bytes,
      .read_seconds = seconds(now.read_time),
      .tasks = now.tasks,
      .busy_seconds = seconds(now.busy),
      .cpu_seconds = seconds(now.cpu),
      .cache_hits = now.ram_hits + now.disk_hits + now.peer_hits,
      .cache_misses = now.cache_misses,
      .threads = now.threads,
      .in_flight = now.in_flight,
      .lookahead = now.lookahead,
      .part_bytes = now.part_bytes,
      .data_bytes = data_bytes};
  const MutexLock lock(mutex);
  const Settings most = most_settings();
  seen.most_threads = most.threads;
  seen.most_in_flight = most.in_flight;
  seen.cores = static_cast<double>(share.cores) / share.local_ranks;
  seen.most_bytes_per_second = allowed.bytes_per_second.value_or(0);
  seen.memory_bytes = share.memory_bytes;
  return seen;
}

std::vector<Decision> Loader::decisions() const {
  const Machine& m = *machine_;
  std::vector<Decision> all;
  if (m.tuning != nullptr) all = m.tuning->decisions();
  {
    const MutexLock lock(m.mutex);
    all.insert(all.end(), m.cache_decisions.begin(), m.cache_decisions.end());
  }
  {
    const MutexLock lock(m.choosing);
    if (m.form_chosen) all.push_back(m.form_chosen->decision);
  }
  std::ranges::stable_sort(all, {}, &Decision::at_seconds);
  return all;
}

std::optional<Explanation> Loader::explanation() const {
  if (machine_->tuning == nullptr) return std::nullopt;
  return machine_->tuning->explanation();
}

}  // namespace leat
