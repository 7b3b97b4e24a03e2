#include "leat/plan/holder_dealing.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "leat/plan/simulator.h"

namespace leat {
namespace {

std::unique_ptr<HolderDealing> make(const HolderDealingOptions& options) {
  auto dealing = HolderDealing::make(options);
  EXPECT_TRUE(dealing) << dealing.error().message();
  return *std::move(dealing);
}

Steps holder_steps(const HolderDealingOptions& options, std::uint64_t start = 0,
                   std::uint32_t rank = 0) {
  return *Steps::make({.samples = options.samples,
                       .start = start,
                       .global_batch = options.global_batch,
                       .rank = {rank, options.world_size},
                       .tail = options.tail});
}

/// The content of one step: a rank and a position each.
using Dealt = std::vector<std::tuple<std::uint32_t, std::uint64_t, AccessTime>>;

Dealt flat(std::span<const DealtSample> step) {
  Dealt dealt;
  for (const DealtSample& one : step) {
    dealt.emplace_back(one.rank, one.position, one.next_use);
  }
  return dealt;
}

/// All steps from (epoch, position) to the end of the epoch.
std::vector<Dealt> rest_of(HolderDealing& dealing,
                           const HolderDealingOptions& options,
                           std::uint64_t epoch, std::uint64_t position) {
  EXPECT_TRUE(dealing.seek(epoch, position, {}));
  std::vector<Dealt> steps;
  const std::uint64_t count = holder_steps(options, position).count();
  for (std::uint64_t k = 0; k < count; ++k) {
    steps.push_back(flat(dealing.next_step()));
  }
  return steps;
}

HolderDealingOptions any_options() {
  HolderDealingOptions options;
  options.samples = *rc::gen::inRange<std::uint64_t>(8, 200);
  options.order.seed = *rc::gen::arbitrary<std::uint64_t>();
  options.world_size = *rc::gen::inRange<std::uint32_t>(1, 6);
  options.global_batch = options.world_size * *rc::gen::inRange(1, 9);
  options.tail = options.global_batch <= options.samples
                     ? *rc::gen::element(Tail::kKeep, Tail::kDrop, Tail::kPad)
                     : Tail::kKeep;
  options.policy = *rc::gen::element<std::string>("belady", "never_evict");
  options.capacity = *rc::gen::inRange<std::uint64_t>(0, 100);
  options.is_balanced = *rc::gen::arbitrary<bool>();
  if (*rc::gen::arbitrary<bool>()) {
    // Some take nothing.
    options.cost = [](SampleId id) { return id.value % 4; };
  }
  return options;
}

// However it is dealt, a step trains on the same samples, and each rank on as
// many of them as without.
RC_GTEST_PROP(HolderDealingProperty,
              EveryStepKeepsItsSamplesAndEveryRankItsCount, ()) {
  const HolderDealingOptions options = any_options();
  const auto dealing = make(options);

  for (std::uint64_t epoch = 0; epoch < 4; ++epoch) {
    const EpochOrder order(options.samples, options.order, nullptr, epoch);
    RC_ASSERT(dealing->seek(epoch, 0, {}).has_value());
    const Steps steps = holder_steps(options);
    for (std::uint64_t k = 0; k < steps.count(); ++k) {
      std::vector<std::uint64_t> counts(options.world_size);
      std::uint64_t position = steps.all_ranks(k).begin;
      for (const DealtSample& dealt : dealing->next_step()) {
        RC_ASSERT(dealt.position == position++);
        RC_ASSERT(dealt.sample == order.at(dealt.position % options.samples));
        ++counts[dealt.rank];
      }
      RC_ASSERT(position == steps.all_ranks(k).end);
      for (std::uint32_t rank = 0; rank < options.world_size; ++rank) {
        RC_ASSERT(counts[rank] ==
                  holder_steps(options, 0, rank).slice(k).size());
      }
    }
  }
}

// Another rank, or the same job a day later.
RC_GTEST_PROP(HolderDealingProperty, GoesOnAsIfItHadNeverStopped, ()) {
  const HolderDealingOptions options = any_options();
  const auto straight = make(options);
  std::vector<std::vector<Dealt>> epochs;
  for (std::uint64_t epoch = 0; epoch < 4; ++epoch) {
    epochs.push_back(rest_of(*straight, options, epoch, 0));
  }
  const auto epoch = *rc::gen::inRange<std::uint64_t>(0, 4);
  const auto step =
      *rc::gen::inRange<std::uint64_t>(0, holder_steps(options).count());
  const std::uint64_t position = step * options.global_batch;
  const std::vector<Dealt> expected(
      epochs[epoch].begin() + static_cast<std::ptrdiff_t>(step),
      epochs[epoch].end());

  RC_ASSERT(rest_of(*make(options), options, epoch, position) == expected);
  // From anywhere, and back.
  RC_ASSERT(rest_of(*straight, options, epoch, position) == expected);
  if (epoch < 3) {
    RC_ASSERT(rest_of(*straight, options, epoch + 1, 0) == epochs[epoch + 1]);
  }
}

// A process that deals the first steps of a stream may know no others. So no
// rank's cache, and nothing that comes later, has a say in them.
RC_GTEST_PROP(HolderDealingProperty, TheFirstEpochOfAStreamIsDealtInRuns, ()) {
  HolderDealingOptions options = any_options();
  std::vector<SampleSpan> spans(options.samples);
  const auto each = *rc::gen::inRange<std::uint64_t>(1, 30);
  for (std::uint64_t i = 0; i < spans.size(); ++i) {
    spans[i] = {.object = {static_cast<std::uint32_t>(i / each)},
                .begin = i % each,
                .end = i % each + 1};
  }
  options.order.shuffle = Shuffle::kStream;
  options.order.window_blocks = *rc::gen::inRange<std::uint32_t>(1, 4);
  options.blocks = std::make_shared<BlockMap>(BlockMap::cut(spans, each));
  const auto dealing = make(options);

  RC_ASSERT(dealing->seek(0, 0, {}).has_value());
  for (std::uint64_t k = 0; k < holder_steps(options).count(); ++k) {
    for (const DealtSample& dealt : dealing->next_step()) {
      const StepSlice slice = holder_steps(options, 0, dealt.rank).slice(k);
      RC_ASSERT(slice.begin <= dealt.position && dealt.position < slice.end);
    }
  }
}

// With another global batch before, a position may stand between two steps.
RC_GTEST_PROP(HolderDealingProperty, GoesOnFromBetweenTwoSteps, ()) {
  const HolderDealingOptions options = any_options();
  const auto epoch = *rc::gen::inRange<std::uint64_t>(0, 3);
  const auto position =
      *rc::gen::inRange<std::uint64_t>(0, options.samples + 1);
  const auto one = make(options);
  const auto other = make(options);
  if (*rc::gen::arbitrary<bool>()) (void)rest_of(*other, options, 2, 0);

  RC_ASSERT(rest_of(*one, options, epoch, position) ==
            rest_of(*other, options, epoch, position));

  // The next epoch knows nothing of it.
  RC_ASSERT(rest_of(*one, options, epoch + 1, 0) ==
            rest_of(*make(options), options, epoch + 1, 0));
}

/// The obvious version of remap over caches of equal samples under Belady's
/// rule: a map from sample to next use for each rank.
struct Obvious {
  const HolderDealingOptions& options;
  std::vector<std::map<std::uint64_t, AccessTime>> caches =
      std::vector<std::map<std::uint64_t, AccessTime>>(options.world_size);

  std::uint32_t holder(std::uint64_t sample) const {
    std::uint32_t rank = 0;
    while (rank < caches.size() && !caches[rank].contains(sample)) ++rank;
    return rank;
  }

  std::vector<std::uint32_t> deal(const std::vector<std::uint64_t>& step) {
    const std::size_t share = step.size() / options.world_size;
    std::vector<std::size_t> taken(options.world_size + 1);
    std::vector<std::uint32_t> ranks(step.size(), options.world_size);
    const auto place = [&](std::size_t i, std::uint32_t rank) {
      if (rank == options.world_size || taken[rank] == share) return;
      ranks[i] = rank;
      ++taken[rank];
    };
    for (std::size_t i = 0; i < step.size(); ++i) place(i, holder(step[i]));
    for (const bool is_held : {false, true}) {
      for (std::size_t i = 0; i < step.size(); ++i) {
        if ((holder(step[i]) < options.world_size) != is_held) continue;
        for (std::uint32_t rank = 0;
             rank < options.world_size && ranks[i] == options.world_size;
             ++rank) {
          place(i, rank);
        }
      }
    }
    return ranks;
  }

  void read(std::uint32_t rank, std::uint64_t sample, AccessTime next) {
    auto& cache = caches[rank];
    if (const auto h = holder(sample); h < options.world_size && h != rank) {
      return;
    }
    if (cache.contains(sample)) {
      cache[sample] = next;
      return;
    }
    if (cache.size() < options.capacity) {
      cache[sample] = next;
      return;
    }
    const auto last = std::ranges::max_element(
        cache, {}, [](const auto& held) { return held.second; });
    if (last == cache.end() || last->second <= next) return;
    cache.erase(last);
    cache[sample] = next;
  }
};

RC_GTEST_PROP(HolderDealingProperty, RemapsAsTheObviousVersionDoes, ()) {
  HolderDealingOptions options;
  options.world_size = *rc::gen::inRange<std::uint32_t>(1, 5);
  options.global_batch = options.world_size * *rc::gen::inRange(1, 6);
  options.samples = options.global_batch * *rc::gen::inRange(1, 12);
  options.order.seed = *rc::gen::arbitrary<std::uint64_t>();
  options.capacity = *rc::gen::inRange<std::uint64_t>(0, 30);
  const auto dealing = make(options);
  Obvious obvious{options};

  for (std::uint64_t epoch = 0; epoch < 4; ++epoch) {
    const EpochOrder order(options.samples, options.order, nullptr, epoch);
    const EpochOrder next(options.samples, options.order, nullptr, epoch + 1);
    RC_ASSERT(dealing->seek(epoch, 0, {}).has_value());
    for (std::uint64_t begin = 0; begin < options.samples;
         begin += options.global_batch) {
      std::vector<std::uint64_t> step;
      for (std::uint64_t i = 0; i < options.global_batch; ++i) {
        step.push_back(order.at(begin + i).value);
      }
      const auto ranks = obvious.deal(step);
      const auto dealt = dealing->next_step();
      for (std::size_t i = 0; i < step.size(); ++i) {
        RC_ASSERT(dealt[i].rank == ranks[i]);
        RC_ASSERT(dealt[i].is_held == (obvious.holder(step[i]) == ranks[i]));
        obvious.read(
            ranks[i], step[i],
            (epoch + 1) * options.samples + next.position_of({step[i]}));
        RC_ASSERT((dealt[i].next_use != kNever) ==
                  (obvious.holder(step[i]) == ranks[i]));
      }
    }
  }
}

SimulationOptions ladder(Locality locality) {
  return {.samples = 4000,
          .order = {.seed = 3},
          .global_batch = 160,
          .locality = locality,
          .ranks = 4,
          .nodes = 4,
          .epochs = 10,
          .tiers = {{.capacity = 750, .unit = CapacityUnit::kItems}}};
}

struct Sums {
  std::uint64_t gets = 0;
  std::uint64_t uneven = 0;
};

Sums later(const SimulationOptions& options) {
  const auto report = simulate(options);
  EXPECT_TRUE(report.has_value());
  Sums sums;
  for (std::size_t i = 1; i < report->epochs.size(); ++i) {
    sums.gets += report->epochs[i].gets;
    sums.uneven += report->epochs[i].uneven_gets;
  }
  return sums;
}

TEST(HolderDealingTest, EachRungOfTheLadderLoadsLess) {
  const Sums none = later(ladder(Locality::kNone));
  const Sums remap = later(ladder(Locality::kRemap));
  const Sums balance = later(ladder(Locality::kBalance));

  // Four caches of 750 are one of 3,000, except for samples that a rank has no
  // room for.
  constexpr std::uint64_t kLeast = 9 * (4000 - 3000);
  EXPECT_LT(remap.gets, none.gets * 3 / 4);
  EXPECT_LT(balance.gets, remap.gets);
  EXPECT_LT(balance.uneven, remap.uneven / 2);
  // By one in less than every other of the 9 * 25 steps.
  EXPECT_LT(balance.uneven, 9u * 25u / 2u);
  EXPECT_GE(balance.gets, kLeast);
  EXPECT_LT(balance.gets, kLeast * 102 / 100);
}

// Caches that hear of their own reads alone, and of each when it comes again,
// hold what the dealing simulates: each sample that it takes for held is.
RC_GTEST_PROP(HolderDealingProperty, CachesThatAreToldHoldWhatIsSimulated, ()) {
  SimulationOptions options;
  options.ranks = options.nodes = *rc::gen::inRange<std::uint32_t>(1, 5);
  options.global_batch = options.ranks * *rc::gen::inRange(1, 8);
  options.samples = options.global_batch * *rc::gen::inRange(1, 12) +
                    *rc::gen::inRange<std::uint64_t>(0, 7);
  options.order.seed = *rc::gen::arbitrary<std::uint64_t>();
  options.locality = *rc::gen::element(Locality::kRemap, Locality::kBalance);
  options.epochs = *rc::gen::inRange<std::uint64_t>(1, 5);
  options.tiers = {{.capacity = *rc::gen::inRange<std::uint64_t>(1, 300)}};
  options.sizes = *rc::gen::container<std::vector<std::uint64_t>>(
      options.samples, rc::gen::inRange<std::uint64_t>(1, 9));
  const auto report = simulate(options);
  RC_ASSERT(report.has_value());

  const auto dealing =
      make({.samples = options.samples,
            .order = options.order,
            .global_batch = options.global_batch,
            .world_size = options.ranks,
            .capacity = options.tiers.front().capacity,
            .cost = [&](SampleId id) { return options.sizes[id.value]; },
            .is_balanced = options.locality == Locality::kBalance});
  for (std::uint64_t epoch = 0; epoch < options.epochs; ++epoch) {
    std::uint64_t held = 0;
    RC_ASSERT(dealing->seek(epoch, 0, {}).has_value());
    for (std::uint64_t at = 0; at < options.samples;) {
      const auto step = dealing->next_step();
      at += step.size();
      held += static_cast<std::uint64_t>(
          std::ranges::count_if(step, &DealtSample::is_held));
    }
    RC_ASSERT(report->epochs[epoch].tier_hits.front() == held);
  }
}

TEST(HolderDealingTest, RefusesWhatItCannotSimulate) {
  const HolderDealingOptions good{
      .samples = 100, .global_batch = 10, .world_size = 2, .capacity = 5};
  ASSERT_TRUE(HolderDealing::make(good));

  HolderDealingOptions lru = good;
  lru.policy = "lru";
  EXPECT_FALSE(HolderDealing::make(lru));
  HolderDealingOptions odd = good;
  odd.global_batch = 5;
  EXPECT_FALSE(HolderDealing::make(odd));
  HolderDealingOptions nobody = good;
  nobody.world_size = 0;
  EXPECT_FALSE(HolderDealing::make(nobody));
  HolderDealingOptions huge = good;
  huge.samples = 4'000'000'000;
  huge.capacity = ~std::uint64_t{0};
  const auto refused = HolderDealing::make(huge);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::kResourceExhausted);
  EXPECT_FALSE(make(good)->seek(0, 101, {}));
}

TEST(HolderDealingTest, AStopEndsTheWayAndTheNextSeekGoesOn) {
  const HolderDealingOptions options{
      .samples = 100, .global_batch = 10, .world_size = 2, .capacity = 5};
  const auto dealing = make(options);
  std::stop_source stop;
  stop.request_stop();

  const auto stopped = dealing->seek(3, 20, stop.get_token());

  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code(), ErrorCode::kCancelled);
  EXPECT_EQ(rest_of(*dealing, options, 3, 20),
            rest_of(*make(options), options, 3, 20));
}

TEST(DealingTest, LocalitiesHaveNames) {
  for (const std::string_view name : locality_names()) {
    const auto parsed = parse_locality(name);
    ASSERT_TRUE(parsed);
    EXPECT_EQ(to_string(*parsed), name);
  }
  const auto none = parse_locality("magic");
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message().find("none, sticky, remap, balance"),
            std::string::npos);
}

}  // namespace
}  // namespace leat
