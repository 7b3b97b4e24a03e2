#include "leat/plan/mixed_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "leat/plan/lane_dealing.h"
#include "leat/plan/steps.h"

namespace leat {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Ids = std::vector<std::uint64_t>;

MixOptions mix_of(std::vector<std::uint64_t> sizes,
                  std::vector<double> weights) {
  MixOptions options;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    options.sources.push_back({.name = "source" + std::to_string(i),
                               .samples = sizes[i],
                               .weight = weights[i]});
  }
  return options;
}

std::shared_ptr<const MixedOrder> made(
    const MixOptions& options, Shuffle shuffle = Shuffle::kFull,
    std::shared_ptr<const BlockMap> blocks = nullptr) {
  auto order = MixedOrder::make(
      options, {.shuffle = shuffle, .seed = 3, .window_blocks = 4},
      std::move(blocks));
  EXPECT_TRUE(order) << order.error().message();
  return *order;
}

Ids ids_of(const MixedOrder& order, std::uint64_t epoch) {
  Ids ids;
  const auto its = order.epoch(epoch);
  for (std::uint64_t p = 0; p < its->size(); ++p) {
    ids.push_back(its->at(p).value);
  }
  return ids;
}

/// How often each sample comes.
std::map<std::uint64_t, int> counts_by_id(const Ids& ids) {
  std::map<std::uint64_t, int> counts;
  for (const std::uint64_t id : ids) ++counts[id];
  return counts;
}

TEST(MixedOrderTest, AnEpochEndsWithTheFirstSourceOrWithTheLast) {
  MixOptions options = mix_of({30, 30}, {0.75, 0.25});
  options.composition = Composition::kStratified;
  options.stop = MixStop::kFirstExhausted;
  EXPECT_EQ(made(options)->size(0), 40U);

  options.stop = MixStop::kAllExhausted;
  const auto order = made(options);
  ASSERT_EQ(order->size(0), 119U);  // The last of the second source is there.
  const auto counts = counts_by_id(ids_of(*order, 0));
  EXPECT_EQ(counts.size(), 60U);
  for (const auto& [id, count] : counts) {
    EXPECT_EQ(count, id < 30 ? std::max(count, 2) : 1) << id;
  }
}

TEST(MixedOrderTest, WithoutReplacementEachSampleComesOnce) {
  MixOptions options = mix_of({10, 200, 31}, {1, 1, 2});
  options.stop = MixStop::kAllExhaustedWithoutReplacement;
  for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
    const Ids ids = ids_of(*made(options), epoch);
    ASSERT_EQ(ids.size(), 241U);
    EXPECT_EQ(std::set(ids.begin(), ids.end()).size(), 241U);
  }
}

TEST(MixedOrderTest, ASourceIsChosenOrRepeatedExactly) {
  MixOptions options = mix_of({10, 200}, {25, 50});
  options.stop = MixStop::kAllExhaustedWithoutReplacement;
  options.sources[0].wanted = 25;
  options.sources[1].wanted = 50;
  const auto order = made(options);

  ASSERT_EQ(order->size(0), 75U);
  std::map<std::uint64_t, int> all;
  for (std::uint64_t epoch = 0; epoch < 4; ++epoch) {
    for (const auto& [id, count] : counts_by_id(ids_of(*order, epoch))) {
      all[id] += count;
    }
  }
  // A source goes on where it stopped: no sample comes twice as often.
  for (const auto& [id, count] : all) EXPECT_EQ(count, id < 10 ? 10 : 1) << id;
  EXPECT_EQ(all.size(), 210U);
}

TEST(MixedOrderTest, ASourceOfWeight0NeverComes) {
  const Ids ids = ids_of(*made(mix_of({10, 20, 30}, {1, 0, 1})), 0);
  for (const std::uint64_t id : ids) EXPECT_TRUE(id < 10 || id >= 30) << id;
}

TEST(MixedOrderTest, AStepIsOfOneSource) {
  MixOptions options = mix_of({100, 100}, {0.5, 0.5});
  options.composition = Composition::kPerSource;
  options.global_batch = 8;
  const Ids ids = ids_of(*made(options), 0);

  ASSERT_EQ(ids.size() % 8, 0U);
  std::set<bool> both;
  for (std::size_t step = 0; step < ids.size() / 8; ++step) {
    const bool is_first = ids[8 * step] < 100;
    both.insert(is_first);
    for (std::size_t i = 0; i < 8; ++i) {
      EXPECT_EQ(ids[8 * step + i] < 100, is_first);
    }
  }
  EXPECT_EQ(both.size(), 2U);
}

/// The samples of each source among the first of a stream.
Ids had_of(const MixedOrder& order, std::uint64_t samples) {
  return order.had_before(0, samples);
}

TEST(MixedOrderTest, AScheduleChangesTheWeightsAtASample) {
  MixOptions options = mix_of({1000, 1000}, {1, 0});
  options.composition = Composition::kStratified;
  options.samples_per_epoch = 1000;
  options.schedule = {{.first = 300, .weights = {1, 1}},
                      {.first = 500, .weights = {0, 1}}};
  const auto order = made(options);

  EXPECT_THAT(had_of(*order, 300), ElementsAre(300, 0));
  EXPECT_THAT(had_of(*order, 500), ElementsAre(400, 100));
  EXPECT_THAT(had_of(*order, 1000), ElementsAre(400, 600));
  const Ids ids = ids_of(*order, 0);
  EXPECT_EQ(std::set(ids.begin(), ids.end()).size(), 1000U);
}

TEST(MixedOrderTest, ARampHasTheIntegralOfItsWeights) {
  MixOptions options = mix_of({100'000, 100'000}, {1, 0});
  options.composition = Composition::kStratified;
  options.samples_per_epoch = 100'000;
  options.is_ramp = true;
  options.schedule = {{.first = 64'000, .weights = {0, 1}}};
  const auto order = made(options);

  for (std::uint64_t stage = 0; stage <= 64; ++stage) {
    const auto at = static_cast<double>(stage) / 64;
    const double second = 64'000 * at * at / 2;
    EXPECT_NEAR(static_cast<double>(had_of(*order, stage * 1000)[1]), second,
                2 + static_cast<double>(stage) / 2)
        << stage;
  }
}

TEST(MixedOrderTest, RefusesSchedulesThatCannotBeMeant) {
  const auto message_of = [](const MixOptions& options) {
    const auto order =
        MixedOrder::make(options, {.shuffle = Shuffle::kFull}, nullptr);
    return order ? std::string() : std::string(order.error().message());
  };
  MixOptions options = mix_of({10, 10}, {1, 1});
  options.schedule = {{.first = 5, .weights = {1, 0}}};
  EXPECT_THAT(message_of(options), HasSubstr("never be exhausted"));
  options.samples_per_epoch = 20;
  EXPECT_EQ(message_of(options), "");
  options.schedule.push_back({.first = 5, .weights = {1, 1}});
  EXPECT_THAT(message_of(options), HasSubstr("samples rise"));
  options.schedule[1] = {.first = 6, .weights = {0, 0}};
  EXPECT_THAT(message_of(options), HasSubstr("weight 0 from sample 6"));
}

TEST(MixedOrderTest, RefusesWhatCannotBeMeant) {
  const auto message_of = [](const MixOptions& options) {
    const auto order =
        MixedOrder::make(options, {.shuffle = Shuffle::kFull}, nullptr);
    return order ? std::string() : std::string(order.error().message());
  };
  EXPECT_THAT(message_of(mix_of({10}, {-1})), HasSubstr("\"source0\""));
  EXPECT_THAT(message_of(mix_of({10, 10}, {0, 0})), HasSubstr("weight 0"));
  EXPECT_THAT(message_of(mix_of({10, 0}, {1, 1})), HasSubstr("\"source1\""));
  EXPECT_THAT(message_of({}), HasSubstr("0 sources"));
  MixOptions options = mix_of({10, 10}, {1, 1});
  options.composition = Composition::kPerSource;
  options.stop = MixStop::kAllExhaustedWithoutReplacement;
  EXPECT_THAT(message_of(options), HasSubstr("all_exhausted"));
}

/// Sources of some sizes, in any kind of mix.
MixOptions some_mix() {
  const auto sources = *rc::gen::inRange<std::size_t>(1, 6);
  std::vector<std::uint64_t> sizes;
  std::vector<double> weights;
  for (std::size_t i = 0; i < sources; ++i) {
    sizes.push_back(*rc::gen::inRange<std::uint64_t>(1, 200));
    weights.push_back(*rc::gen::inRange(1, 30));
  }
  MixOptions options = mix_of(sizes, weights);
  options.composition =
      *rc::gen::element(Composition::kRandom, Composition::kStratified);
  options.stop =
      *rc::gen::element(MixStop::kFirstExhausted, MixStop::kAllExhausted,
                        MixStop::kAllExhaustedWithoutReplacement);
  if (*rc::gen::arbitrary<bool>()) {
    options.samples_per_epoch = *rc::gen::inRange<std::uint64_t>(1, 300);
  }
  return options;
}

/// Counts the samples of each source at the end, and one position before it.
RC_GTEST_PROP(MixedOrderProperty, AnEpochEndsWhereItsStopSays, ()) {
  MixOptions options = some_mix();
  options.samples_per_epoch = 0;
  options.stop =
      *rc::gen::element(MixStop::kFirstExhausted, MixStop::kAllExhausted);
  const auto order = made(options);
  for (std::uint64_t epoch = 0; epoch < 4; ++epoch) {
    const std::uint64_t size = *order->size(epoch);
    const Ids before = order->had_before(epoch, 0);
    const auto through_at = [&](std::uint64_t position) {
      const Ids had = order->had_before(epoch, position);
      std::size_t through = 0;
      for (std::size_t i = 0; i < had.size(); ++i) {
        through += had[i] - before[i] >= options.sources[i].samples ? 1U : 0U;
      }
      return through;
    };
    const std::size_t wanted =
        options.stop == MixStop::kFirstExhausted ? 1 : options.sources.size();
    RC_ASSERT(through_at(size) >= wanted);
    RC_ASSERT(through_at(size - 1) < wanted);
  }
}

/// Which source each of the ids is of, and which of its samples.
std::vector<Ids> by_source(const MixOptions& options, const Ids& ids) {
  std::vector<Ids> its(options.sources.size());
  for (const std::uint64_t id : ids) {
    std::uint64_t first = 0;
    for (std::size_t i = 0; i < options.sources.size(); ++i) {
      if (id < first + options.sources[i].samples) {
        its[i].push_back(id - first);
        break;
      }
      first += options.sources[i].samples;
    }
  }
  return its;
}

RC_GTEST_PROP(MixedOrderProperty, EachLapOfASourceHasAllItsSamples, ()) {
  const MixOptions options = some_mix();
  const auto order = made(options);
  Ids all;
  for (std::uint64_t epoch = 0; epoch < 4; ++epoch) {
    const Ids ids = ids_of(*order, epoch);
    all.insert(all.end(), ids.begin(), ids.end());
  }
  const std::vector<Ids> sources = by_source(options, all);
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const std::uint64_t samples = options.sources[i].samples;
    for (std::size_t lap = 0; lap < sources[i].size() / samples; ++lap) {
      const auto begin =
          sources[i].begin() + static_cast<std::ptrdiff_t>(lap * samples);
      const std::set<std::uint64_t> found(
          begin, begin + static_cast<std::ptrdiff_t>(samples));
      RC_ASSERT(found.size() == samples);
    }
  }
}

/// As if a loader stopped anywhere, and other weights, an additional source and
/// one source less followed.
RC_GTEST_PROP(MixedOrderProperty, AnotherMixGoesOnWhereEachSourceStopped, ()) {
  const MixOptions before = some_mix();
  const auto order = made(before);
  const std::uint64_t epoch = *rc::gen::inRange<std::uint64_t>(0, 3);
  const std::uint64_t position =
      *rc::gen::inRange<std::uint64_t>(0, *order->size(epoch) + 1);
  std::vector<Ids> came(before.sources.size());
  const auto add = [&](const MixOptions& options, const Ids& ids,
                       std::size_t skipped) {
    const std::vector<Ids> its = by_source(options, ids);
    for (std::size_t i = skipped; i < came.size(); ++i) {
      const Ids& more = its[i - skipped];
      came[i].insert(came[i].end(), more.begin(), more.end());
    }
  };
  for (std::uint64_t e = 0; e <= epoch; ++e) {
    Ids ids = ids_of(*order, e);
    if (e == epoch) ids.resize(position);
    add(before, ids, 0);
  }
  const std::vector<std::uint64_t> had = order->had_before(epoch, position);
  MixOptions after = before;
  after.first_epoch = epoch;
  for (std::size_t i = 0; i < had.size(); ++i) {
    RC_ASSERT(had[i] == came[i].size());
    after.sources[i].begin = had[i];
    after.sources[i].weight = *rc::gen::inRange(1, 30);
  }
  const std::size_t skipped = before.sources.size() > 1 ? 1 : 0;
  if (skipped != 0) after.sources.erase(after.sources.begin());
  after.sources.push_back({.name = "new", .samples = 5, .weight = 2});
  for (std::uint64_t e = epoch; e < epoch + 3; ++e) {
    add(after, ids_of(*made(after), e), skipped);
  }
  for (std::size_t i = 0; i < came.size(); ++i) {
    const std::uint64_t samples = before.sources[i].samples;
    for (std::size_t lap = 0; lap < came[i].size() / samples; ++lap) {
      const auto begin =
          came[i].begin() + static_cast<std::ptrdiff_t>(lap * samples);
      RC_ASSERT(std::set(begin, begin + static_cast<std::ptrdiff_t>(samples))
                    .size() == samples);
    }
  }
}

/// Samples of 1,000 bytes in shards of their own for each source.
std::shared_ptr<const BlockMap> blocks_of(const MixOptions& options,
                                          std::uint64_t piece_bytes) {
  std::vector<SampleSpan> spans;
  std::uint32_t object = 0;
  for (const MixSource& source : options.sources) {
    for (std::uint64_t i = 0; i < source.samples; ++i) {
      if (i % 50 == 0) ++object;
      spans.push_back(
          {ObjectIndex{object}, i % 50 * 1000, i % 50 * 1000 + 1000});
    }
  }
  return std::make_shared<const BlockMap>(BlockMap::cut(spans, piece_bytes));
}

RC_GTEST_PROP(MixedOrderProperty, SamplesOfAPieceFindEachOther, ()) {
  const MixOptions options = some_mix();
  const auto order = made(options, Shuffle::kBlock, blocks_of(options, 7000));
  const auto epoch = order->epoch(*rc::gen::inRange<std::uint64_t>(0, 3));
  std::map<std::uint64_t, Ids> positions;  // By sample.
  for (std::uint64_t p = 0; p < epoch->size(); ++p) {
    positions[epoch->at(p).value].push_back(p);
  }
  for (std::uint64_t p = 0; p < epoch->size(); ++p) {
    RC_ASSERT(epoch->position_near(epoch->at(p), p) == p);
  }
  // In a lap a sample has one position at most.
  for (const auto& [sample, its] : positions) {
    for (std::size_t i = 1; i < its.size(); ++i) {
      const auto near = epoch->position_near(SampleId{sample}, its[i] - 1);
      if (epoch->at(its[i] - 1).value / 1000 == sample / 1000 && near) {
        RC_ASSERT(std::ranges::find(its, *near) != its.end());
      }
    }
  }
}

RC_GTEST_PROP(MixedOrderProperty, AnyNumberOfRanksDealsTheSameSteps, ()) {
  const MixOptions options = some_mix();
  const auto order = made(options, Shuffle::kBlock, blocks_of(options, 7000));
  const EpochOrder epoch(0, {.shuffle = Shuffle::kDrawn, .drawn = order.get()},
                         nullptr, 1);
  const auto world = *rc::gen::inRange<std::uint32_t>(1, 9);
  const std::uint64_t batch = 4 * world;
  RC_PRE(epoch.size() > batch);
  std::vector<std::set<std::uint64_t>> steps;
  for (std::uint32_t rank = 0; rank < world; ++rank) {
    const Steps its = *Steps::make({.samples = epoch.size(),
                                    .global_batch = batch,
                                    .rank = {rank, world},
                                    .tail = Tail::kDrop});
    LaneDealing dealing(epoch, its);
    steps.resize(its.count());
    for (std::uint64_t step = 0; step < its.count(); ++step) {
      for (const std::uint64_t p : dealing.positions_of(step)) {
        RC_ASSERT(p / batch == step);
        RC_ASSERT(steps[step].insert(p).second);
      }
    }
  }
  for (const auto& step : steps) RC_ASSERT(step.size() == batch);
}

TEST(MixedOrderTest, TheOrderIsPartOfAState) {
  MixOptions options = mix_of({5, 7}, {0.75, 0.25});
  options.composition = Composition::kStratified;
  EXPECT_THAT(ids_of(*made(options), 0),
              ElementsAre(4, 2, 8, 1, 3, 0, 10, 2, 0, 4, 9, 3, 1, 1, 11, 2, 0,
                          4, 5, 3, 2, 1, 7, 0, 3, 4, 6));
  options.composition = Composition::kRandom;
  Ids ids = ids_of(*made(options), 1);
  ids.resize(12);
  EXPECT_THAT(ids, ElementsAre(10, 1, 0, 3, 4, 6, 0, 3, 4, 1, 7, 2));
}

}  // namespace
}  // namespace leat
