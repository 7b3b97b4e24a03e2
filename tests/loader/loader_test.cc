#include "leat/engine/loader/loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "leat/base/units.h"
#include "tests/loader/world.h"

namespace leat {
namespace {

using ::testing::HasSubstr;

std::string folder_url(const World& world) { return world.folder() + "/train"; }

// Every gauge of the catalogue is zero once nothing runs and nobody holds a
// batch.
void expect_nothing_held(const Metrics& metrics) {
  for (std::size_t i = 0; i < kCatalog.size(); ++i) {
    if (kCatalog[i].kind != MetricKind::kGauge) continue;
    EXPECT_EQ(metrics.value(static_cast<Metric>(i)), 0) << kCatalog[i].name;
  }
}

TEST(LoaderTest, TheOrderAndTheBytesDependOnNothingButTheSeed) {
  World world;
  auto reference = must(world.load(folder_url(world), usual_options()));
  const Seen expected = must(run_epoch(*reference));
  ASSERT_EQ(expected.stats.samples, World::kSamples);

  for (const std::vector<std::string>& faults :
       {std::vector<std::string>{}, {"503:3%", "reset:2%", "truncate:2%"}}) {
    world.serve(faults);
    for (const std::size_t in_flight : {1, 64}) {
      LoaderOptions options = usual_options();
      options.threads = in_flight == 1 ? 1 : 4;
      options.max_in_flight = in_flight;
      auto loader = must(world.load(kBucketUrl, options));
      const Seen seen = must(run_epoch(*loader));

      EXPECT_EQ(seen.batches, expected.batches);
      EXPECT_EQ(seen.stats.order_hash, expected.stats.order_hash);
      EXPECT_EQ(seen.stats.content_hash, expected.stats.content_hash);
      EXPECT_EQ(seen.stats.retried > 0, !faults.empty());
    }
  }
}

TEST(LoaderTest, AnotherSeedAndAnotherEpochGiveAnotherOrder) {
  World world;
  LoaderOptions options = usual_options();
  auto loader = must(world.load(folder_url(world), options));
  const Seen first = must(run_epoch(*loader));
  const Seen second = must(run_epoch(*loader));
  options.seed = 8;
  auto other = must(world.load(folder_url(world), options));
  const Seen reseeded = must(run_epoch(*other));

  EXPECT_EQ(second.stats.epoch, 1u);
  EXPECT_NE(first.batches, second.batches);
  EXPECT_NE(first.batches, reseeded.batches);
  EXPECT_NE(first.stats.content_hash, second.stats.content_hash);
}

TEST(LoaderTest, RanksTogetherGetTheGlobalBatches) {
  World world;
  LoaderOptions options = usual_options();
  options.global_batch_size = 48;
  const Seen whole =
      must(run_epoch(*must(world.load(folder_url(world), options))));

  for (const std::uint32_t ranks : {2u, 3u, 8u}) {
    std::vector<std::vector<std::uint64_t>> together(whole.batches.size());
    Hash128 content;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      options.rank = Rank{.rank = rank, .world_size = ranks};
      const Seen part =
          must(run_epoch(*must(world.load(folder_url(world), options))));
      ASSERT_EQ(part.batches.size(), together.size());
      for (std::size_t step = 0; step < together.size(); ++step) {
        together[step].insert(together[step].end(), part.batches[step].begin(),
                              part.batches[step].end());
      }
      content += part.stats.content_hash;
    }
    EXPECT_EQ(together, whole.batches) << ranks;
    EXPECT_EQ(content, whole.stats.content_hash) << ranks;
  }
}

TEST(LoaderTest, AStateGoesOnExactlyAtAnyWorldSize) {
  World world;
  LoaderOptions options = usual_options();
  options.global_batch_size = 24;
  const Seen whole =
      must(run_epoch(*must(world.load(folder_url(world), options))));
  auto loader = must(world.load(folder_url(world), options));
  const Loader::Iteration iteration = must(loader->begin());
  std::vector<std::uint64_t> delivered;
  for (int step = 0; step < 3; ++step) {
    Loader::Next next = must(loader->next(iteration));
    for (const SampleId id : next.batch().ids) delivered.push_back(id.value);
  }
  const std::string state = loader->state();
  EXPECT_EQ(loader->remaining(), *loader->length() - 3);

  std::vector<std::vector<std::uint64_t>> rest(whole.batches.size() - 3);
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    options.rank = Rank{.rank = rank, .world_size = 3};
    auto resumed = must(world.load(folder_url(world), options));
    ASSERT_TRUE(resumed->load_state(state));
    EXPECT_EQ(resumed->length(), whole.batches.size());
    const Seen part = must(run_epoch(*resumed));
    for (std::size_t step = 0; step < rest.size(); ++step) {
      rest[step].insert(rest[step].end(), part.batches[step].begin(),
                        part.batches[step].end());
    }
  }
  for (const auto& batch : rest) {
    delivered.insert(delivered.end(), batch.begin(), batch.end());
  }
  EXPECT_EQ(delivered, flat(whole));
}

TEST(LoaderTest, AStateOfOtherDataOrSeedIsRefused) {
  World world;
  auto loader = must(world.load(folder_url(world), usual_options()));
  LoaderOptions options = usual_options();
  options.seed = 8;
  auto other = must(world.load(folder_url(world), options));

  const Result<void> loaded = other->load_state(loader->state());

  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(loaded.error().message(), HasSubstr("seed 7"));
  EXPECT_FALSE(other->load_state("[1, 2"));
  EXPECT_FALSE(other->load_state(R"({"leat_state": 99})"));
}

TEST(LoaderTest, TheStallsSumToTheWaitExactly) {
  World world;
  world.serve();
  auto loader = must(world.load(kBucketUrl, usual_options()));
  const Seen seen = must(run_epoch(*loader));

  EXPECT_GT(seen.stats.wait.count(), 0);
  EXPECT_EQ(seen.stats.stalls.total(), seen.stats.wait);
  EXPECT_LE(seen.stats.wait, seen.stats.elapsed);
}

TEST(LoaderTest, EndsSoonWhateverIsInFlight) {
  World world;
  world.serve();
  Dataset dataset = must(world.open(kBucketUrl));  // While the bucket is well.
  world.serve({"stall:100%"});
  std::shared_ptr<const Metrics> metrics;
  TimePoint begin;
  {
    auto loader = must(world.load(std::move(dataset), usual_options()));
    metrics = loader->metrics();
    const Loader::Iteration iteration = must(loader->begin());
    while (metrics->value(Metric::kStoreInFlight) == 0) {
      const Loader::Next next =
          must(loader->next_within(iteration, std::chrono::milliseconds(200)));
      EXPECT_TRUE(next.is_not_yet());
    }
    begin = SteadyClock().now();
  }
  // It would take minutes if it waited for stalled reads.
  EXPECT_LT(SteadyClock().now() - begin, std::chrono::seconds(10));
  expect_nothing_held(*metrics);
}

TEST(LoaderTest, HoldsNothingOnceItIsDoneAndItsBatchesAreGone) {
  World world;
  std::shared_ptr<const Metrics> metrics;
  std::vector<Batch> kept;
  {
    auto loader = must(world.load(folder_url(world), usual_options()));
    metrics = loader->metrics();
    const Loader::Iteration iteration = must(loader->begin());
    while (true) {
      Loader::Next next = must(loader->next(iteration));
      if (next.is_end()) break;
      kept.push_back(std::move(next.batch()));
    }
  }
  ASSERT_EQ(kept.size(), World::kSamples / 16);
  EXPECT_GT(metrics->value(Metric::kPipelineSlotBytes), 0);
  kept.clear();

  expect_nothing_held(*metrics);
}

TEST(LoaderTest, OneBatchThatCannotFitIsAnErrorNamingTheBytes) {
  World world;
  LoaderOptions options = usual_options();
  options.memory_bytes = 10 * kKiB;
  auto loader = must(world.load(folder_url(world), options));

  const Result<Seen> seen = run_epoch(*loader);

  ASSERT_FALSE(seen);
  EXPECT_EQ(seen.error().code(), ErrorCode::kResourceExhausted);
  EXPECT_THAT(seen.error().message(), HasSubstr("memory= allows 10 KiB"));
}

TEST(LoaderTest, ALaterIteratorEndsTheFirst) {
  World world;
  auto loader = must(world.load(folder_url(world), usual_options()));
  const Loader::Iteration first = must(loader->begin());
  ASSERT_FALSE(must(loader->next(first)).is_end());
  const Loader::Iteration second = must(loader->begin());

  const Result<Loader::Next> next = loader->next(first);

  ASSERT_FALSE(next);
  EXPECT_EQ(next.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(must(loader->next(second)).batch().epoch, 1u);
}

TEST(LoaderTest, PeekingMovesNothing) {
  World world;
  auto loader = must(world.load(folder_url(world), usual_options()));
  Loader::Next peeked = must(loader->peek_within(std::chrono::seconds(10)));
  ASSERT_FALSE(peeked.is_not_yet());
  EXPECT_EQ(loader->remaining(), loader->length());

  const Seen seen = must(run_epoch(*loader));

  EXPECT_EQ(seen.stats.epoch, 0u);
  ASSERT_EQ(seen.batches.size(), loader->length());
  EXPECT_EQ(peeked.batch().ids[0].value, seen.batches[0][0]);
}

TEST(LoaderTest, KeptTailsHoldEachSampleOnceOverAllRanks) {
  World world;
  LoaderOptions options = usual_options();
  options.drop_last = false;
  options.global_batch_size = 21;  // 240 = 11 * 21 + 9; 9 = 3 * 3.
  std::vector<std::uint64_t> all;
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    options.rank = Rank{.rank = rank, .world_size = 3};
    const Seen part =
        must(run_epoch(*must(world.load(folder_url(world), options))));
    const std::vector<std::uint64_t> ids = flat(part);
    all.insert(all.end(), ids.begin(), ids.end());
  }
  std::ranges::sort(all);

  ASSERT_EQ(all.size(), World::kSamples);
  for (std::uint64_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i], i);
}

TEST(LoaderTest, WhatIsFetchedAheadIsNotFetchedAgain) {
  World world;
  world.serve();
  LoaderOptions options = usual_options();
  options.epochs = 2;
  auto loader = must(world.load(kBucketUrl, options));
  const Seen first = must(run_epoch(*loader));
  const Seen second = must(run_epoch(*loader));

  // 15 of the 240 objects are empty and need no request.
  EXPECT_EQ(first.stats.gets, World::kSamples - 15);
  EXPECT_EQ(second.stats.gets, World::kSamples - 15);
  EXPECT_EQ(second.stats.ahead, 0u);  // There is no third epoch.
  EXPECT_EQ(second.stats.samples, World::kSamples);
}

}  // namespace
}  // namespace leat
