#include "leat/plan/sweep.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

namespace leat {
namespace {

ReadSize of_100_bytes(std::uint64_t) { return {.bytes = 100, .cost = 100}; }

SweepOptions swept_job(std::uint64_t samples) {
  return {.samples = samples,
          .read_size = of_100_bytes,
          .global_batch = 400,
          .ranks = 4,
          .nodes = 2,
          .epochs = 12,
          .ram_bytes = samples * 100 / 8,
          .disk_bytes = samples * 100 / 8,
          .times = {.compute_seconds = 0.1, .get_seconds = 0.05}};
}

const SweepRow& row(const std::vector<SweepRow>& rows, const char* name) {
  return *std::find_if(rows.begin(), rows.end(),
                       [&](const SweepRow& r) { return r.name == name; });
}

std::uint64_t gets_of(const SweepRow& row) {
  std::uint64_t gets = 0;
  for (const EpochCounts& epoch : row.report.epochs) gets += epoch.gets;
  return gets;
}

TEST(SweepTest, ComparesPoliciesSizesAndPeers) {
  const auto rows = sweep(swept_job(4000));
  ASSERT_TRUE(rows.has_value()) << rows.error().message();

  EXPECT_EQ(gets_of(row(*rows, "no cache")), 12u * 4000u);
  EXPECT_LT(gets_of(row(*rows, "belady")), gets_of(row(*rows, "never_evict")));
  EXPECT_LT(gets_of(row(*rows, "never_evict")), gets_of(row(*rows, "lru")));
  EXPECT_LT(gets_of(row(*rows, "belady x2")), gets_of(row(*rows, "belady")));
  EXPECT_GT(gets_of(row(*rows, "belady x0.5")), gets_of(row(*rows, "belady")));
  EXPECT_LT(gets_of(row(*rows, "never_evict + peers")),
            gets_of(row(*rows, "never_evict")));
}

// The memory of all nodes holds it all, with a tenth to spare: read once.
TEST(SweepTest, MemoryMayGoToServersThatAllNodesReadFrom) {
  for (const std::uint64_t samples : {4000, 100000}) {  // The latter as 50,000.
    SweepOptions options = swept_job(samples);
    options.epochs = 2;
    options.ram_bytes = samples * 100 * 6 / 10;
    options.disk_bytes = 0;
    const auto rows = sweep(options);
    ASSERT_TRUE(rows.has_value()) << rows.error().message();

    const SweepRow& peers = row(*rows, "peers");
    EXPECT_EQ(gets_of(peers), samples);
    EXPECT_TRUE(peers.options.tiers.empty());
    EXPECT_EQ(peers.options.peer_memory->bytes, options.ram_bytes);
  }
}

// Nine tenths of 0.6 N fit: in a large job as in the small one that stands for
// it.
TEST(SweepTest, ServersOfALargeJobHoldTheSameShareAsOfASmallOne) {
  for (const std::uint64_t samples : {4000, 100000}) {
    SweepOptions options = swept_job(samples);
    options.epochs = 2;
    options.ram_bytes = samples * 100 * 3 / 10;
    options.disk_bytes = 0;
    const auto rows = sweep(options);
    ASSERT_TRUE(rows.has_value()) << rows.error().message();

    const auto gets = static_cast<double>(gets_of(row(*rows, "peers")));
    EXPECT_NEAR(gets / static_cast<double>(samples), 1 + 0.46, 0.03);
  }
}

TEST(SweepTest, DiskStandsBeforeServersAndIsNoneItself) {
  SweepOptions options = swept_job(4000);
  options.ram_bytes = 4000 * 100 * 6 / 10;
  const auto both = sweep(options);
  ASSERT_TRUE(both.has_value()) << both.error().message();
  EXPECT_EQ(row(*both, "peers").options.tiers.size(), 1u);
  EXPECT_EQ(gets_of(row(*both, "peers")), 4000u);

  options.ram_bytes = 0;
  const auto disk = sweep(options);
  ASSERT_TRUE(disk.has_value());
  for (const SweepRow& one : *disk) EXPECT_NE(one.name, "peers");
}

// A smaller dataset predicts the full one within a point.
TEST(SweepTest, ALargeDatasetIsToldFromASmallOne) {
  const std::uint64_t samples = 100000;  // Simulated as 50,000.
  SweepOptions options = swept_job(samples);
  options.epochs = 3;
  const auto rows = sweep(options);
  ASSERT_TRUE(rows.has_value());
  const SweepRow& told = row(*rows, "belady");

  SimulationOptions whole = told.options;
  whole.sizes = {100};
  const auto full = simulate(whole);

  ASSERT_TRUE(full.has_value());
  for (std::size_t e = 0; e < 3; ++e) {
    EXPECT_NEAR(static_cast<double>(told.report.epochs[e].gets),
                static_cast<double>(full->epochs[e].gets), .01 * samples);
    EXPECT_NEAR(told.report.epochs[e].seconds, full->epochs[e].seconds,
                .02 * full->epochs[e].seconds);
  }
}

TEST(SweepTest, TheWaitAtTheStartOfALargeJobIsWaitedOnce) {
  SweepOptions options = swept_job(1000000);  // Simulated as 50,000.
  options.epochs = 2;
  options.only = {"no cache"};
  options.times = {.compute_seconds = 1,
                   .get_seconds = 0.5,
                   .max_in_flight = 1000,
                   .prefetch_steps = 4};

  const auto rows = sweep(options);

  ASSERT_TRUE(rows.has_value()) << rows.error().message();
  const EpochCounts& first = rows->front().report.epochs[0];
  EXPECT_NEAR(first.wait_seconds, 0.5, 1e-6);
  EXPECT_NEAR(first.seconds, 2500 + 0.5, 1e-6);
  EXPECT_NEAR(rows->front().report.epochs[1].seconds, 2500, 1e-6);
}

TEST(SweepTest, GetsOfUnevenRanksAreThoseOfTheWholeJob) {
  SweepOptions options = swept_job(100000);  // Simulated as 50,000.
  options.epochs = 2;
  options.only = {"belady"};
  const auto rows = sweep(options);
  ASSERT_TRUE(rows.has_value()) << rows.error().message();
  SimulationOptions whole = rows->front().options;
  whole.sizes = {100};

  const auto full = simulate(whole);

  ASSERT_TRUE(full.has_value());
  const auto uneven = static_cast<double>(full->epochs[1].uneven_gets);
  EXPECT_GT(uneven, 0);
  EXPECT_NEAR(static_cast<double>(rows->front().report.epochs[1].uneven_gets),
              uneven, .1 * uneven);
}

// A tier needs more for a sample than its bytes, and each sample its own
// amount.
TEST(SweepTest, ATierHoldsWhatFitsByItsCosts) {
  SweepOptions options = swept_job(800);
  options.read_size = [](std::uint64_t sample) {
    return ReadSize{.bytes = 10, .cost = sample % 2 == 0 ? 100U : 300U};
  };
  options.epochs = 2;
  options.ram_bytes = 0;
  options.disk_bytes = 80000;  // Room for 80,000 of 160,000; counted by bytes
                               // alone, all would fit.
  options.nodes = 1;
  const auto rows = sweep(options);
  ASSERT_TRUE(rows.has_value());

  // Never evicting keeps what comes while it fits: about half, more of the
  // small ones at the end.
  const EpochCounts& second = row(*rows, "never_evict").report.epochs[1];
  EXPECT_GT(second.tier_hits[0], 380u);
  EXPECT_LT(second.tier_hits[0], 480u);
  EXPECT_EQ(second.get_bytes, 10 * second.gets);
}

TEST(SweepTest, AStepThatIsDroppedIsNotRead) {
  SweepOptions options = swept_job(4100);
  options.epochs = 1;

  EXPECT_EQ(gets_of(row(*sweep(options), "no cache")), 4000u);
}

/// A job of one rank: blocks of ten samples, read whole.
SweepOptions job_of_blocks(std::uint64_t blocks) {
  std::vector<SampleSpan> spans;
  for (std::uint64_t i = 0; i < 10 * blocks; ++i) {
    spans.push_back(
        {ObjectIndex{static_cast<std::uint32_t>(i / 10)}, i % 10, i % 10 + 1});
  }
  SweepOptions options = swept_job(10 * blocks);
  options.unit = ReadUnit::kBlock;
  options.order = {.shuffle = Shuffle::kBlock, .window_blocks = 4};
  options.blocks = std::make_shared<BlockMap>(BlockMap::cut(spans, 10));
  options.read_size = [](std::uint64_t) {
    return ReadSize{.bytes = 1000, .cost = 1000, .requests = 2};
  };
  options.ranks = 1;
  options.nodes = 1;
  options.objects = blocks;
  options.global_batch = 20;
  options.ram_bytes = 0;
  options.disk_bytes = 500 * blocks;  // Half of them.
  return options;
}

TEST(SweepTest, BlocksAreReadOnceAnEpochAndKeptWhole) {
  const auto rows = sweep(job_of_blocks(100));
  ASSERT_TRUE(rows.has_value()) << rows.error().message();

  EXPECT_EQ(gets_of(row(*rows, "no cache")), 12u * 200u);
  const SweepRow& held = row(*rows, "never_evict");
  EXPECT_EQ(gets_of(held), 200u + 11u * 100u);
  EXPECT_EQ(held.report.epochs[1].tier_hits[0], 100u);
  EXPECT_EQ(held.report.epochs[1].get_bytes, 50u * 1000u);
  // Knowing when a window comes is worth something against age.
  EXPECT_LE(gets_of(row(*rows, "belady")), gets_of(held));
  EXPECT_GT(gets_of(row(*rows, "lru")), gets_of(held));
}

TEST(SweepTest, ManyBlocksAreToldFromSome) {
  SweepOptions options = job_of_blocks(10000);  // 100,000 samples.
  options.epochs = 3;
  const auto rows = sweep(options);
  ASSERT_TRUE(rows.has_value()) << rows.error().message();

  EXPECT_NEAR(static_cast<double>(gets_of(row(*rows, "no cache"))), 60000, 60);
  EXPECT_NEAR(static_cast<double>(gets_of(row(*rows, "never_evict"))), 40000,
              400);
}

TEST(SweepTest, WithoutRoomThereIsNoCacheToCompare) {
  SweepOptions options = swept_job(1000);
  options.ram_bytes = 0;
  options.disk_bytes = 0;

  EXPECT_EQ(sweep(options)->size(), 1u);
}

TEST(SweepTest, RefusesNothing) {
  SweepOptions options = swept_job(1000);
  options.samples = 0;

  EXPECT_FALSE(sweep(options).has_value());
}

}  // namespace
}  // namespace leat
