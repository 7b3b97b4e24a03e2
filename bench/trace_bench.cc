// The cost of drawing a sample into a trace: batches of 256 whose requests were
// in flight at once, a few of them or as many as a loader looks ahead; or whose
// bytes had come with others'.

#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <vector>

#include "leat/engine/trace.h"

namespace {

using std::chrono::microseconds;

constexpr int kBatch = 256;

void trace_sample(benchmark::State& state) {
  const auto in_flight = static_cast<int>(state.range(0));
  const auto with_fetch = static_cast<int>(state.range(1));
  const std::string path =
      std::filesystem::temp_directory_path() / "leat-trace-bench.json";
  auto trace = leat::Trace::open(path, 0);
  if (!trace) return state.SkipWithError(trace.error().message().c_str());
  const leat::TimePoint start = leat::SteadyClock().now();
  std::vector<leat::SampleTimes> times(kBatch);
  std::vector<leat::TracedSample> samples;
  std::int64_t batches = 0;
  std::int64_t of_this_file = 0;
  for (auto _ : state) {
    // A sample each 200 microseconds, so that all are drawn; it was asked for
    // `in_flight` samples before.
    const leat::TimePoint begin = start + microseconds(200) * kBatch * batches;
    samples.clear();
    for (int i = 0; i < kBatch; ++i) {
      const leat::TimePoint fetched = begin + microseconds(200) * i;
      const bool is_there = i * 100 >= kBatch * with_fetch;
      times[i] = {is_there ? fetched : fetched - microseconds(200) * in_flight,
                  fetched,
                  fetched + microseconds(150),
                  fetched + microseconds(180),
                  {}};
      samples.push_back(
          {leat::SampleId{static_cast<std::uint64_t>(batches * kBatch + i)},
           &times[i]});
    }
    const leat::TimePoint ready = begin + microseconds(200) * kBatch;
    (*trace)->add({.epoch = 0,
                   .step = static_cast<std::uint64_t>(batches++),
                   .samples = samples,
                   .ready = ready,
                   .wait = {begin, ready}});
    if (++of_this_file == 500) {  // Before it is full.
      of_this_file = 0;
      trace = leat::Trace::open(path, 0);
    }
  }
  std::filesystem::remove(path);
  state.counters["CPU of a sample"] = benchmark::Counter(
      static_cast<double>(state.iterations()) * kBatch,
      benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK(trace_sample)
    ->ArgNames({"in flight", "% with a fetch"})
    ->ArgsProduct({{16, 256, 16'000}, {0, 100}});

}  // namespace

BENCHMARK_MAIN();
