// Tiers hit what the simulator says, exactly: the same reads, one at a time,
// through a CachedStore over one tier, in RAM and on disk, and over both, of
// each policy.

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "tests/cache/driven_cache.h"

namespace leat {
namespace {

using Case = std::tuple<CacheLevel, std::string>;

class SimulatedHitsTest : public ::testing::TestWithParam<Case> {
 protected:
  SimulatedHitsTest() {
    std::string name = ::testing::TempDir() + "leat-hits-XXXXXX";
    folder_ = ::mkdtemp(name.data());
  }
  ~SimulatedHitsTest() override { std::filesystem::remove_all(folder_); }

  /// Hits of all epochs, each as many as simulated. `run_epoch(driven, epoch)`
  /// reads one, and returns its hits.
  template <class RunEpoch>
  std::uint64_t hits_as_simulated(const DrivenJob& job,
                                  const RunEpoch& run_epoch) {
    const SimulationReport simulated = *simulate(job.simulation());
    DrivenCache driven(job, folder_ + "/" + std::to_string(runs_++));
    std::uint64_t hits = 0;
    for (std::uint64_t epoch = 0; epoch < kDrivenEpochs; ++epoch) {
      const std::uint64_t expected = simulated.epochs[epoch].tier_hits[0];
      EXPECT_EQ(run_epoch(driven, epoch), expected) << epoch;
      hits += expected;
    }
    EXPECT_EQ(driven.metric(Metric::kCacheRefusals), 0);
    return hits;
  }

  std::string folder_;
  int runs_ = 0;
};

TEST_P(SimulatedHitsTest, OneReadAtATimeHitsWhatTheSimulatorSays) {
  const auto& [level, policy] = GetParam();
  for (const std::uint32_t ranks : {1, 3}) {
    for (const std::uint64_t percent : {40, 75}) {
      SCOPED_TRACE(std::to_string(ranks) + " ranks, " +
                   std::to_string(percent) + " % of what one reads");
      const DrivenJob job{
          .ranks = ranks,
          .policy = policy,
          .tiers = {{level, driven_bytes() / ranks * percent / 100}}};
      const std::uint64_t hits =
          hits_as_simulated(job, [](DrivenCache& driven, std::uint64_t epoch) {
            std::uint64_t found = 0;
            driven.run_epoch(
                epoch, [&](SampleId id, std::uint64_t e, std::uint64_t at) {
                  if (driven.read(id, e, at)) ++found;
                });
            return found;
          });

      EXPECT_GT(hits, 0u);
      EXPECT_LT(hits, (kDrivenEpochs - 1) * kDrivenSamples / ranks);
    }
  }
}

// A sample on its way is not kept yet, and the one that it will push out still
// is. That must make no difference to what a policy keeps.
TEST_P(SimulatedHitsTest, ReadsThatComeLateHitWhatTheSimulatorSays) {
  const auto& [level, policy] = GetParam();
  const DrivenJob job{.ranks = 1,
                      .policy = policy,
                      .tiers = {{level, driven_bytes() / 2}},
                      .late_reads = 16};
  const SimulationReport simulated = *simulate(job.simulation());
  std::uint64_t expected = 0;
  std::uint64_t hits = 0;
  DrivenCache driven(job, folder_);
  for (std::uint64_t epoch = 0; epoch < kDrivenEpochs; ++epoch) {
    expected += simulated.epochs[epoch].tier_hits[0];
    driven.run_epoch(epoch,
                     [&](SampleId id, std::uint64_t e, std::uint64_t at) {
                       if (driven.read_ahead(id, e, at)) ++hits;
                     });
  }

  ASSERT_GT(expected, 100u);
  EXPECT_GE(hits, expected - expected / 100);
  // Reads of samples that are on their way as the next epoch begins hit beside
  // the tier, if it has kept the rest: here an eighth more.
  if (!has_policy_trait(policy, &CachePolicyKind::takes_late_uses)) {
    EXPECT_LE(hits, expected + expected / 100);
  }
}

TEST_P(SimulatedHitsTest, OneReadAtATimeOfWhatIsDealtToHoldersToo) {
  const auto& [level, policy] = GetParam();
  const std::uint64_t capacity = kDrivenSamples / 3 / 2 * record_cost(8000);
  if (!has_policy_trait(policy, &CachePolicyKind::is_foreseen)) {
    const DrivenJob job{.ranks = 3,
                        .policy = policy,
                        .tiers = {{level, capacity}},
                        .locality = Locality::kRemap};
    EXPECT_FALSE(simulate(job.simulation()));
    return;
  }
  for (const Locality locality : {Locality::kRemap, Locality::kBalance}) {
    SCOPED_TRACE(to_string(locality));
    const DrivenJob job{.ranks = 3,
                        .policy = policy,
                        .tiers = {{level, capacity}},
                        .locality = locality};
    const std::uint64_t hits =
        hits_as_simulated(job, [](DrivenCache& driven, std::uint64_t epoch) {
          std::uint64_t found = 0;
          driven.run_dealt_epoch(
              epoch, [&](SampleId id, AccessTime now, AccessTime next_use) {
                if (driven.read_at(id, now, next_use)) ++found;
              });
          return found;
        });

    EXPECT_GT(hits, (kDrivenEpochs - 1) * kDrivenSamples / 3 / 3);
  }
}

// A tier that is made smaller, and larger again than it was, while it is read.
TEST_P(SimulatedHitsTest, ATierIsResizedAsTheSimulatorsIs) {
  const CacheLevel level = std::get<0>(GetParam());
  const auto& policy = std::get<1>(GetParam());
  const std::uint64_t limit = driven_bytes() * 8 / 10;
  const DrivenJob job{.ranks = 1, .policy = policy, .tiers = {{level, limit}}};
  const std::vector<std::uint64_t> sizes = job.simulation().sizes;
  TierStack stack = job.stack(sizes);
  DrivenCache driven(job, folder_);
  const Metric used = level == CacheLevel::kRam ? Metric::kCacheRamBytes
                                                : Metric::kCacheDiskBytes;
  std::uint64_t capacity = 0;
  const auto resize = [&](std::uint64_t bytes) {
    capacity = bytes;
    stack.set_capacity(0, bytes);
    driven.set_share(level, bytes);
    EXPECT_LE(driven.metric(used), static_cast<std::int64_t>(bytes));
    EXPECT_EQ(driven.metric(used),
              static_cast<std::int64_t>(stack.tier(0).held_bytes()));
  };

  resize(limit * 6 / 10);
  std::uint64_t reads = 0;
  std::uint64_t hits = 0;
  for (std::uint64_t epoch = 0; epoch < kDrivenEpochs; ++epoch) {
    driven.run_epoch(epoch, [&](SampleId id, std::uint64_t e,
                                std::uint64_t position) {
      if (reads == kDrivenSamples * 3 / 2) resize(limit * 2 / 10);
      if (reads == kDrivenSamples * 5 / 2) resize(limit);
      if (reads == kDrivenSamples * 7 / 2) resize(limit * 5 / 10);
      ++reads;
      const bool expected = stack.read(id, e, position) != TierStack::kMiss;
      EXPECT_EQ(driven.read(id, e, position).has_value(), expected) << reads;
      EXPECT_LE(driven.metric(used), static_cast<std::int64_t>(capacity));
      if (expected) ++hits;
    });
  }

  EXPECT_EQ(driven.metric(Metric::kCacheRefusals), 0);
  EXPECT_GT(driven.metric(Metric::kCacheDrops), 0);
  EXPECT_GT(hits, 0u);
}

/// RAM before disk.
class BothTiersTest : public ::testing::Test {
 protected:
  BothTiersTest() {
    std::string name = ::testing::TempDir() + "leat-hits-XXXXXX";
    folder_ = ::mkdtemp(name.data());
  }
  ~BothTiersTest() override { std::filesystem::remove_all(folder_); }

  /// Reads all epochs; each read comes from where the simulator's does.
  /// `before(read)` is called first, `resize` with it.
  template <class Before>
  std::vector<std::uint64_t> run(const DrivenJob& job, const Before& before) {
    const std::vector<std::uint64_t> sizes = job.simulation().sizes;
    TierStack stack = job.stack(sizes);
    DrivenCache driven(job, folder_ + "/" + std::to_string(runs_++));
    std::vector<std::uint64_t> hits(2);
    std::uint64_t reads = 0;
    for (std::uint64_t epoch = 0; epoch < kDrivenEpochs; ++epoch) {
      driven.run_epoch(
          epoch, [&](SampleId id, std::uint64_t e, std::uint64_t position) {
            before(reads++, stack, driven);
            std::optional<CacheLevel> expected;
            const std::size_t tier = stack.read(id, e, position);
            if (tier != TierStack::kMiss) expected = job.tiers[tier].level;
            if (tier != TierStack::kMiss) ++hits[tier];
            EXPECT_EQ(driven.read(id, e, position), expected) << reads;
          });
    }
    EXPECT_EQ(driven.metric(Metric::kCacheRefusals), 0);
    return hits;
  }

  /// As simulate() says, too, in all.
  static void expect_simulated(const DrivenJob& job,
                               const std::vector<std::uint64_t>& hits) {
    const SimulationReport simulated = *simulate(job.simulation());
    for (std::size_t tier : {0, 1}) {
      std::uint64_t expected = 0;
      for (const EpochCounts& epoch : simulated.epochs) {
        expected += epoch.tier_hits[tier];
      }
      EXPECT_EQ(hits[tier], expected);
    }
  }

  std::string folder_;
  int runs_ = 0;
};

/// For each policy.
class TiersTogetherTest : public BothTiersTest,
                          public ::testing::WithParamInterface<std::string> {};

TEST_P(TiersTogetherTest, EachReadComesFromTheTierThatTheSimulatorSays) {
  for (const std::uint32_t ranks : {1, 3}) {
    const std::uint64_t all = driven_bytes() / ranks;
    const DrivenJob job{.ranks = ranks,
                        .policy = GetParam(),
                        .tiers = {{CacheLevel::kRam, all * 20 / 100},
                                  {CacheLevel::kDisk, all * 35 / 100}}};
    SCOPED_TRACE(ranks);

    const std::vector<std::uint64_t> hits =
        run(job, [](std::uint64_t, TierStack&, DrivenCache&) {});

    expect_simulated(job, hits);
    EXPECT_GT(hits[0] + hits[1], 0u);
  }
}

TEST_P(TiersTogetherTest, WhatASmallerTierPartsWithGoesToTheNext) {
  const std::uint64_t all = driven_bytes();
  const DrivenJob job{.ranks = 1,
                      .policy = GetParam(),
                      .tiers = {{CacheLevel::kRam, all * 30 / 100},
                                {CacheLevel::kDisk, all * 40 / 100}}};

  const std::vector<std::uint64_t> hits =
      run(job, [&](std::uint64_t read, TierStack& stack, DrivenCache& driven) {
        const auto resize = [&](std::size_t tier, std::uint64_t percent) {
          const std::uint64_t bytes = all * percent / 100;
          stack.set_capacity(tier, bytes);
          driven.set_share(job.tiers[tier].level, bytes);
        };
        if (read == kDrivenSamples * 3 / 2) resize(0, 10);
        if (read == kDrivenSamples * 2) resize(1, 15);
        if (read == kDrivenSamples * 5 / 2) resize(0, 30);
        if (read == kDrivenSamples * 7 / 2) resize(1, 40);
      });

  EXPECT_GT(hits[0], 0u);
  EXPECT_GT(hits[1], 0u);
}

TEST_F(BothTiersTest, WhatEachMayHoldIsSaidBeforehand) {
  const auto nothing = [](std::uint64_t, TierStack&, DrivenCache&) {};
  for (const std::uint32_t ranks : {1, 3}) {
    const std::uint64_t all = driven_bytes() / ranks;
    std::uint64_t most = 0;
    for (const Placement placement :
         {Placement::kAny, Placement::kFirstEpoch, Placement::kFrequency}) {
      SCOPED_TRACE(std::string(to_string(placement)) + ", " +
                   std::to_string(ranks) + " ranks");
      // More than a rank reads in an epoch, if there are several.
      const DrivenJob job{
          .ranks = ranks,
          .policy = "never_evict",
          .tiers = {{CacheLevel::kRam, all * 30 / 100},
                    {CacheLevel::kDisk, all * (ranks == 1 ? 40 : 80) / 100}},
          .placement = placement};

      const std::vector<std::uint64_t> hits = run(job, nothing);

      expect_simulated(job, hits);
      EXPECT_GT(hits[0], 0u);
      EXPECT_GT(hits[1], 0u);
      if (ranks == 1) continue;
      // Its part of the first epoch alone is less than fits; the samples that
      // it reads most often hit more than those that came first.
      if (placement == Placement::kFirstEpoch) {
        EXPECT_LT(hits[0] + hits[1], most);
      } else {
        EXPECT_GT(hits[0] + hits[1], most);
        most = hits[0] + hits[1];
      }
    }
  }
}

std::vector<std::string> policies() {
  const auto names = cache_policy_names();
  return {names.begin(), names.end()};
}

INSTANTIATE_TEST_SUITE_P(Policies, TiersTogetherTest,
                         ::testing::ValuesIn(policies()),
                         [](const auto& tested) { return tested.param; });

INSTANTIATE_TEST_SUITE_P(
    Tiers, SimulatedHitsTest,
    ::testing::Combine(::testing::Values(CacheLevel::kRam, CacheLevel::kDisk),
                       ::testing::ValuesIn(policies())),
    [](const auto& tested) {
      return std::string(std::get<0>(tested.param) == CacheLevel::kRam
                             ? "Ram_"
                             : "Disk_")
          .append(std::get<1>(tested.param));
    });

}  // namespace
}  // namespace leat
