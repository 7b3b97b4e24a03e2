// The simulator: one rank of four over a million samples, a cache of a quarter
// of what the rank reads in an epoch. Items are reads; 1e8 a minute is 1.7 M/s.
// decide: what a tier asks a full policy at each read of one of W ranks, of ten
// million samples with two million held.
// deal: what it takes to deal a sample to one of 64 ranks by what they hold, of
// as many. Each rank does so for the samples of all; `a_rank` is that, for each
// sample that it delivers.

#include <benchmark/benchmark.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

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

/// One of `ranks` at its reads, with a full policy.
class Decider {
 public:
  static constexpr std::uint64_t kSamples = 10000000;
  static constexpr std::uint64_t kHeld = 2000000;
  static constexpr std::uint64_t kGlobalBatch = 1024;

  Decider(std::string name, std::uint32_t ranks)
      : name_(std::move(name)),
        ranks_(ranks),
        policy_(*leat::make_cache_policy({.name = name_,
                                          .samples = kSamples,
                                          .capacity = kHeld,
                                          .unit = leat::CapacityUnit::kItems})),
        next_use_(*leat::NextUse::make({.samples = kSamples,
                                        .global_batch = kGlobalBatch,
                                        .ranks = {0, 1, ranks},
                                        .end_epoch = 1000})) {
    while (policy_->held_items() < kHeld) read();
  }
  bool is(const std::string& name, std::uint32_t ranks) const {
    return name_ == name && ranks_ == ranks;
  }

  void read() {
    // The rank's run of each step.
    const std::uint64_t run = kGlobalBatch / ranks_;
    if (position_ % kGlobalBatch == run) position_ += kGlobalBatch - run;
    if (position_ >= kSamples) {
      position_ = 0;
      order_ = leat::EpochOrder(kSamples, {}, nullptr, ++epoch_);
    }
    const leat::SampleId sample = order_.at(position_);
    const leat::AccessTime now = next_use_.time_of(epoch_, position_);
    const leat::AccessTime next =
        next_use_.at_or_after(sample, epoch_, position_ + 1);
    drop_.clear();
    if (policy_->holds(sample)) {
      policy_->used(sample, now, next, drop_);
    } else {
      policy_->admit(sample, 1, now, next, drop_);
    }
    ++position_;
  }

 private:
  const std::string name_;
  const std::uint32_t ranks_;
  const std::unique_ptr<leat::CachePolicy> policy_;
  leat::NextUse next_use_;
  leat::EpochOrder order_{kSamples, {}, nullptr, 0};
  std::vector<leat::SampleId> drop_;
  std::uint64_t position_ = 0;
  std::uint64_t epoch_ = 0;
};

void decide(benchmark::State& state, const std::string& name) {
  const auto ranks = static_cast<std::uint32_t>(state.range(0));
  // Kept from one attempt of the library to the next: it takes long to fill.
  static std::unique_ptr<Decider> decider;
  if (decider == nullptr || !decider->is(name, ranks)) {
    decider = std::make_unique<Decider>(name, ranks);
  }
  for (auto _ : state) decider->read();
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK_CAPTURE(decide, lru, "lru")->Arg(4)->Arg(64);
BENCHMARK_CAPTURE(decide, belady, "belady")->Arg(4)->Arg(64);

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
