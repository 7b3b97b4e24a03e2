// Look-ups in the order of a block shuffle of 100 million samples, of 5,000
// bytes (60,000 pieces) and of 100,000 (1.2 million).

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "leat/base/hash.h"
#include "leat/plan/lane_order.h"

namespace {

constexpr std::uint64_t kSamples = 100'000'000;

/// Pieces of 8 MiB, give or take a tenth.
std::shared_ptr<const leat::BlockMap> blocks_of(std::uint64_t sample_bytes) {
  const std::uint64_t each = leat::kUsualPieceBytes / sample_bytes;
  std::vector<std::uint64_t> first = {0};
  while (first.back() < kSamples) {
    const std::uint64_t more =
        each + leat::mix64(first.size()) % (each / 5 + 1) - each / 10;
    first.push_back(std::min(kSamples, first.back() + more));
  }
  return std::make_shared<const leat::BlockMap>(std::move(first));
}

leat::LaneOrder order_of(const benchmark::State& state) {
  return leat::LaneOrder(blocks_of(static_cast<std::uint64_t>(state.range(0))),
                         /*mixed_blocks=*/64, /*seed=*/1, /*epoch=*/0);
}

void lane_order_make(benchmark::State& state) {
  const auto blocks = blocks_of(static_cast<std::uint64_t>(state.range(0)));
  for (auto _ : state) {
    benchmark::DoNotOptimize(leat::LaneOrder(blocks, 64, 1, 0));
  }
}
BENCHMARK(lane_order_make)
    ->Arg(5'000)
    ->Arg(100'000)
    ->Unit(benchmark::kMillisecond);

template <class LookUp>
void in_sequence(benchmark::State& state, const LookUp& look_up) {
  const leat::LaneOrder order = order_of(state);
  std::uint64_t place = kSamples / 3;
  for (auto _ : state) benchmark::DoNotOptimize(look_up(order, place++));
}

/// Each look-up waits for the one before.
template <class LookUp>
void at_random(benchmark::State& state, const LookUp& look_up) {
  const leat::LaneOrder order = order_of(state);
  std::uint64_t place = 0;
  for (auto _ : state) {
    place = leat::mix64(place + look_up(order, place)) % kSamples;
    benchmark::DoNotOptimize(place);
  }
}

const auto at = [](const leat::LaneOrder& order, std::uint64_t p) {
  return order.at(p);
};
const auto position_of = [](const leat::LaneOrder& order, std::uint64_t s) {
  return order.position_of(s);
};
const auto place_of = [](const leat::LaneOrder& order, std::uint64_t p) {
  return order.place_of(p);
};

BENCHMARK_CAPTURE(in_sequence, at, at)->Arg(5'000)->Arg(100'000);
BENCHMARK_CAPTURE(in_sequence, position_of, position_of)
    ->Arg(5'000)
    ->Arg(100'000);
BENCHMARK_CAPTURE(in_sequence, place_of, place_of)->Arg(5'000)->Arg(100'000);
BENCHMARK_CAPTURE(at_random, at, at)->Arg(5'000)->Arg(100'000);
BENCHMARK_CAPTURE(at_random, position_of, position_of)
    ->Arg(5'000)
    ->Arg(100'000);

}  // namespace

BENCHMARK_MAIN();
