#include "leat/engine/recent_trace.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace leat {
namespace {

constexpr Nanoseconds kWatched = std::chrono::seconds(5);

std::uint64_t count_of(TimePoint time) {
  return static_cast<std::uint64_t>(
      std::max<Nanoseconds::rep>(0, time.time_since_epoch().count()));
}

TraceSample sample_of(const TracedSample& traced) {
  const SampleTimes& times = *traced.times;
  TraceSample sample{.id = traced.id.value,
                     .reserved = count_of(times.reserved),
                     .fetched = count_of(times.fetched),
                     .decoded = count_of(times.decoded),
                     .finished = count_of(times.finished)};
  for (const Delay& delay : times.delays) {
    if (delay.cause != Stall::kCacheIo && delay.cause != Stall::kPeer) continue;
    const std::uint64_t begin = count_of(delay.time.begin);
    const std::uint64_t end = count_of(delay.time.end);
    if (end - begin <= sample.cache_end - sample.cache_begin) continue;
    sample.cache_begin = begin;
    sample.cache_end = end;
  }
  return sample;
}

/// Visits all times of a step and its samples.
template <class Visit>
void each_time(TraceStep& step, Visit visit) {
  for (std::uint64_t* time : {&step.ready, &step.asked, &step.given}) {
    visit(*time);
  }
  for (TraceSample& sample : step.samples) {
    for (std::uint64_t* time :
         {&sample.reserved, &sample.fetched, &sample.decoded, &sample.finished,
          &sample.cache_begin, &sample.cache_end}) {
      visit(*time);
    }
  }
}

}  // namespace

void RecentTrace::add(const TracedBatch& batch) {
  TraceStep step{.epoch = batch.epoch,
                 .step = batch.step,
                 .size = batch.samples.size(),
                 .ready = count_of(batch.ready),
                 .asked = count_of(batch.wait.begin),
                 .given = count_of(batch.wait.end)};
  // Keeps the sample that all waited for, and the others at even intervals.
  if (!batch.samples.empty()) {
    const auto last = std::ranges::max_element(
        batch.samples, {},
        [](const TracedSample& one) { return one.times->finished; });
    step.samples.push_back(sample_of(*last));
    const std::size_t stride =
        batch.samples.size() / TraceStep::kMostSamples + 1;
    for (std::size_t row = 0; row < batch.samples.size(); row += stride) {
      if (&batch.samples[row] == &*last) continue;
      step.samples.push_back(sample_of(batch.samples[row]));
      if (step.samples.size() == TraceStep::kMostSamples) break;
    }
  }
  const MutexLock lock(mutex_);
  steps_.push_back(std::move(step));
  if (steps_.size() > JobTrace::kMostSteps) steps_.pop_front();
}

JobTrace RecentTrace::see() {
  const TimePoint now = SteadyClock().now();
  const std::chrono::duration<double> wall =
      std::chrono::system_clock::now().time_since_epoch();
  JobTrace trace;
  const bool was_watched = is_watched(now);
  watched_until_.store((now + kWatched).time_since_epoch().count(),
                       std::memory_order_relaxed);
  const MutexLock lock(mutex_);
  if (!was_watched) steps_.clear();  // Those since somebody last looked.
  trace.steps.assign(steps_.begin(), steps_.end());
  if (trace.steps.empty()) return trace;
  std::uint64_t begin = trace.steps.front().given;
  const auto find_first = [&](std::uint64_t time) {
    if (time != 0) begin = std::min(begin, time);
  };
  for (TraceStep& step : trace.steps) each_time(step, find_first);
  for (TraceStep& step : trace.steps) {
    each_time(step, [&](std::uint64_t& time) {
      time = time == 0 ? 0 : std::min((time - begin) / 1000, kMostTraceTime);
    });
  }
  trace.begin_seconds =
      wall.count() +
      (static_cast<double>(begin) - static_cast<double>(count_of(now))) / 1e9;
  return trace;
}

}  // namespace leat
