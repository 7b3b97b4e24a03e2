#include "leat/engine/loader_tuning.h"

#include <cerrno>
#include <chrono>
#include <utility>

#include "leat/base/clock.h"
#include "leat/base/system_error.h"
#include "leat/runtime/heap.h"
#include "leat/runtime/log.h"
#include "leat/runtime/start_thread.h"
#include "leat/runtime/thread_name.h"

namespace leat {
namespace {

// The tuner settles a change for half a second and measures it for longer.
constexpr std::chrono::milliseconds kPeriod(500);

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
      thread_(start_thread([this](const std::stop_token& stop) {
        name_this_thread("leat-tuner");
        run(stop);
      })) {}

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
    // Here, since it may take milliseconds: nobody waits for this thread.
    HeapTrim::of_process().trim(SteadyClock().now());
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

// Flushed line by line, so that a forked child has nothing left to write.
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

}  // namespace leat
