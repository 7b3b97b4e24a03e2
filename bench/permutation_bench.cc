// An index of the order, at random positions: nothing is kept between two.

#include <benchmark/benchmark.h>

#include <cstdint>

#include "leat/plan/permutation.h"

namespace {

void permutation_at(benchmark::State& state) {
  const auto n = static_cast<std::uint64_t>(state.range(0));
  const leat::Permutation order(n, /*seed=*/1, /*stream=*/0);
  std::uint64_t position = 0;
  for (auto _ : state) {
    position = order.at(position);  // The next look-up waits for this one.
    benchmark::DoNotOptimize(position);
  }
}
BENCHMARK(permutation_at)->Arg(1'000'000)->Arg(1'000'000'000);

void permutation_position_of(benchmark::State& state) {
  const auto n = static_cast<std::uint64_t>(state.range(0));
  const leat::Permutation order(n, /*seed=*/1, /*stream=*/0);
  std::uint64_t value = 0;
  for (auto _ : state) {
    value = order.position_of(value);
    benchmark::DoNotOptimize(value);
  }
}
BENCHMARK(permutation_position_of)->Arg(1'000'000'000);

}  // namespace

BENCHMARK_MAIN();
