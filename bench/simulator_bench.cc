// The simulator: one rank of four over a million samples, a cache of a quarter
// of what the rank reads in an epoch. Items are reads; 1e8 a minute is 1.7 M/s.
// decide: what a tier asks a full policy at each read, of ten million samples
// with two million held.
// deal: what it takes to deal a sample to one of 64 ranks by what they hold, of
// as many. Each rank does so for the samples of all; `a_rank` is that, for each
// sample that it delivers.

#include <benchmark/benchmark.h>

#include <cstdint>
#include <string>

#include "leat/plan/dealing.h"
#include "leat/plan/holder_dealing.h"
#include "leat/plan/next_use.h"
#include "leat/plan/simulator.h"

namespace {

void simulate_a_rank(benchmark::State& state, const std::string& policy) {
  constexpr std::uint64_t kSamples = 1000000;
  leat::SimulationOptions options;
  options.samples = kSamples;
  options.global_batch = 1024;
  options.ranks = 4;
  options.nodes = 4;
  options.epochs = 20;
  options.only_ranks = 1;
  options.tiers = {{.policy = policy,
                    .capacity = kSamples / 16,
                    .unit = leat::CapacityUnit::kItems}};
  std::uint64_t reads = 0;
  for (auto _ : state) {
    const auto report = leat::simulate(options);
    for (const leat::EpochCounts& epoch : report->epochs) reads += epoch.reads;
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(reads));
}
BENCHMARK_CAPTURE(simulate_a_rank, lru, "lru")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(simulate_a_rank, belady, "belady")
    ->Unit(benchmark::kMillisecond);

void decide(benchmark::State& state, const std::string& name) {
  constexpr std::uint64_t kSamples = 10000000;
  const auto policy =
      std::move(*leat::make_cache_policy({.name = name,
                                          .samples = kSamples,
                                          .capacity = 2000000,
                                          .unit = leat::CapacityUnit::kItems}));
  auto next_use = *leat::NextUse::make({.samples = kSamples,
                                        .global_batch = 1024,
                                        .ranks = {0, 1, 4},
                                        .end_epoch = 1000});
  std::vector<leat::SampleId> drop;
  std::uint64_t position = 0;
  std::uint64_t epoch = 0;
  leat::EpochOrder order(kSamples, {}, nullptr, epoch);
  const auto read = [&] {
    // The rank's runs: 256 of each step's 1,024.
    if (position % 1024 == 256) position += 768;
    if (position >= kSamples) {
      position = 0;
      order = leat::EpochOrder(kSamples, {}, nullptr, ++epoch);
    }
    const leat::SampleId sample = order.at(position);
    const leat::AccessTime now = next_use.time_of(epoch, position);
    const leat::AccessTime next =
        next_use.at_or_after(sample, epoch, position + 1);
    drop.clear();
    if (policy->holds(sample)) {
      policy->used(sample, now, next, drop);
    } else {
      policy->admit(sample, 1, now, next, drop);
    }
    ++position;
  };
  while (epoch < 2) read();  // Until it is full.
  for (auto _ : state) read();
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK_CAPTURE(decide, lru, "lru");
BENCHMARK_CAPTURE(decide, belady, "belady");

void deal(benchmark::State& state, leat::Locality locality) {
  constexpr std::uint64_t kSamples = 10000000;
  constexpr std::uint64_t kBatch = 64 * 32;
  constexpr std::uint64_t kSteps = kSamples / kBatch;
  const auto dealing = std::move(*leat::HolderDealing::make(
      {.samples = kSamples,
       .global_batch = kBatch,
       .tail = leat::Tail::kDrop,
       .world_size = 64,
       .capacity = 2000000 / 64,
       .unit = leat::CapacityUnit::kItems,
       .is_balanced = locality == leat::Locality::kBalance}));
  std::uint64_t step = 0;
  std::uint64_t epoch = 1;
  // Once through epoch 0: caches are full, and no part of that is timed.
  if (!dealing->seek(epoch++, 0, {})) state.SkipWithError("no way there");
  for (auto _ : state) {
    if (step == kSteps) {
      if (!dealing->seek(epoch++, 0, {})) state.SkipWithError("no way there");
      step = 0;
    }
    benchmark::DoNotOptimize(dealing->next_step().data());
    ++step;
  }
  const auto dealt = static_cast<double>(state.iterations() * kBatch);
  using benchmark::Counter;
  const auto seconds_each = Counter::kIsRate | Counter::kInvert;
  state.counters["a_sample"] = Counter(dealt, seconds_each);
  state.counters["a_rank"] = Counter(dealt / 64, seconds_each);
}
BENCHMARK_CAPTURE(deal, remap, leat::Locality::kRemap)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(deal, balance, leat::Locality::kBalance)
    ->Unit(benchmark::kMicrosecond);

}  // namespace

BENCHMARK_MAIN();
