#include "leat/plan/simulator.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <list>
#include <map>
#include <numeric>

namespace leat {
namespace {

/// A job of `nodes` nodes of one rank, each with a cache of `capacity` samples.
SimulationOptions job_of(std::uint64_t samples, std::uint32_t nodes,
                         std::uint64_t epochs, const std::string& policy,
                         std::uint64_t capacity) {
  SimulationOptions options;
  options.samples = samples;
  options.global_batch = 40ULL * nodes;
  options.ranks = nodes;
  options.nodes = nodes;
  options.epochs = epochs;
  options.tiers = {
      {.policy = policy, .capacity = capacity, .unit = CapacityUnit::kItems}};
  return options;
}

SimulationReport run(const SimulationOptions& options) {
  Result<SimulationReport> report = simulate(options);
  EXPECT_TRUE(report.has_value()) << report.error().message();
  return std::move(*report);
}

std::uint64_t total(const SimulationReport& report,
                    std::uint64_t EpochCounts::*member) {
  std::uint64_t sum = 0;
  for (const EpochCounts& epoch : report.epochs) sum += epoch.*member;
  return sum;
}

/// Hits from the second epoch on, as a share of the reads there.
double hit_ratio(const SimulationReport& report) {
  std::uint64_t hits = 0;
  std::uint64_t reads = 0;
  for (std::size_t e = 1; e < report.epochs.size(); ++e) {
    hits += report.epochs[e].reads - report.epochs[e].gets;
    reads += report.epochs[e].reads;
  }
  return static_cast<double>(hits) / static_cast<double>(reads);
}

// The obvious caches, item by item, over a sequence written out: what the
// simulator is measured by.

std::uint64_t obvious_queue(const std::vector<std::uint64_t>& reads,
                            std::size_t capacity, bool rejoins) {
  std::list<std::uint64_t> held;
  std::uint64_t hits = 0;
  for (const std::uint64_t read : reads) {
    const auto at = std::find(held.begin(), held.end(), read);
    if (at != held.end()) {
      ++hits;
      if (rejoins) held.splice(held.end(), held, at);
      continue;
    }
    held.push_back(read);
    if (held.size() > capacity) held.pop_front();
  }
  return hits;
}

std::uint64_t obvious_never_evict(const std::vector<std::uint64_t>& reads,
                                  std::size_t capacity) {
  std::list<std::uint64_t> held;
  std::uint64_t hits = 0;
  for (const std::uint64_t read : reads) {
    if (std::find(held.begin(), held.end(), read) != held.end()) {
      ++hits;
    } else if (held.size() < capacity) {
      held.push_back(read);
    }
  }
  return hits;
}

std::uint64_t obvious_belady(const std::vector<std::uint64_t>& reads,
                             std::size_t capacity) {
  std::map<std::uint64_t, std::size_t> held;  // And when it is used next.
  std::uint64_t hits = 0;
  for (std::size_t i = 0; i < reads.size(); ++i) {
    const auto next = static_cast<std::size_t>(
        std::find(reads.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                  reads.end(), reads[i]) -
        reads.begin());
    if (const auto at = held.find(reads[i]); at != held.end()) {
      ++hits;
      at->second = next;
      continue;
    }
    if (held.size() == capacity) {
      const auto furthest = std::max_element(
          held.begin(), held.end(),
          [](const auto& a, const auto& b) { return a.second < b.second; });
      if (furthest == held.end() || next >= furthest->second) continue;
      held.erase(furthest);
    }
    held[reads[i]] = next;
  }
  return hits;
}

std::uint64_t obvious(const std::string& policy,
                      const std::vector<std::uint64_t>& reads,
                      std::size_t capacity) {
  if (policy == "lru") return obvious_queue(reads, capacity, true);
  if (policy == "fifo") return obvious_queue(reads, capacity, false);
  if (policy == "belady") return obvious_belady(reads, capacity);
  return obvious_never_evict(reads, capacity);
}

RC_GTEST_PROP(SimulatorProperty, CountsAsTheObviousCachesDo, ()) {
  const std::string policy =
      *rc::gen::element<std::string>("lru", "fifo", "belady", "never_evict");
  const auto nodes = *rc::gen::inRange<std::uint32_t>(1, 4);
  const auto samples = *rc::gen::inRange<std::uint64_t>(1, 120);
  const auto capacity = *rc::gen::inRange<std::uint64_t>(1, 80);
  SimulationOptions options = job_of(samples, nodes, 3, policy, capacity);
  options.order.seed = *rc::gen::arbitrary<std::uint64_t>();
  options.global_batch = nodes * *rc::gen::inRange<std::uint64_t>(1, 9);

  std::uint64_t hits = 0;
  for (std::uint32_t rank = 0; rank < nodes; ++rank) {
    std::vector<std::uint64_t> reads;
    for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
      const EpochOrder order(samples, options.order, nullptr, epoch);
      const Steps steps = *Steps::make({.samples = samples,
                                        .global_batch = options.global_batch,
                                        .rank = {rank, nodes}});
      for (std::uint64_t k = 0; k < steps.count(); ++k) {
        for (std::uint64_t p = steps.slice(k).begin; p < steps.slice(k).end;
             ++p) {
          reads.push_back(order.at(p).value);
        }
      }
    }
    hits += obvious(policy, reads, capacity);
  }
  const SimulationReport report = run(options);

  RC_ASSERT(total(report, &EpochCounts::reads) -
                total(report, &EpochCounts::gets) ==
            hits);
}

// Reference values of an independent simulation of 40 lines, which draws a
// fresh permutation an epoch from NumPy: one node, hits in the steady state.
TEST(SimulatorTest, OneNodeHitsWhatEachPolicyIsKnownToHit) {
  struct Row {
    double capacity, lru, fifo, never_evict, belady;
  };
  constexpr Row kTable[] = {
      {.10, .005, .006, .100, .100}, {.25, .033, .037, .250, .250},
      {.35, .070, .080, .350, .350}, {.50, .153, .193, .500, .500},
      {.65, .285, .402, .650, .650}, {.75, .404, .572, .750, .750},
      {.90, .671, .828, .900, .900}};
  constexpr std::uint64_t kSamples = 10000;
  for (const Row& row : kTable) {
    const auto capacity = static_cast<std::uint64_t>(row.capacity * kSamples);
    const auto hits = [&](const char* policy) {
      return hit_ratio(run(job_of(kSamples, 1, 8, policy, capacity)));
    };
    EXPECT_NEAR(hits("lru"), row.lru, .01) << row.capacity;
    EXPECT_NEAR(hits("fifo"), row.fifo, .01) << row.capacity;
    EXPECT_NEAR(hits("never_evict"), row.never_evict, .01) << row.capacity;
    EXPECT_NEAR(hits("belady"), row.belady, .01) << row.capacity;
  }
}

// The same for three nodes with caches of their own, as a share of the reads of
// a node in an epoch. The reference deals a permutation as rank, rank + 3, …;
// our ranks take runs of a step: with a uniform order, both are uniform
// subsets.
TEST(SimulatorTest, ThreeNodesMissWhatEachPolicyIsKnownToMiss) {
  struct Row {
    double capacity, lru, fifo, never_evict, belady, belady_of_ten;
  };
  constexpr Row kTable[] = {{.25, .989, .989, .915, .750, .750},
                            {.50, .954, .951, .830, .658, .593},
                            {.75, .893, .884, .745, .661, .481},
                            {1.0, .805, .785, .661, .661, .404},
                            {3.0, .666, .666, .666, .666, .216}};
  // Two epochs have but one to count: more samples, less chance.
  const auto share_of = [](std::uint64_t epochs) {
    return epochs == 2 ? std::uint64_t{40000} : std::uint64_t{12000};
  };
  for (const Row& row : kTable) {
    const auto misses = [&](const char* policy, std::uint64_t epochs) {
      const std::uint64_t share = share_of(epochs);
      const auto capacity =
          static_cast<std::uint64_t>(row.capacity * static_cast<double>(share));
      return 1 - hit_ratio(run(job_of(3 * share, 3, epochs, policy, capacity)));
    };
    EXPECT_NEAR(misses("lru", 2), row.lru, .01) << row.capacity;
    EXPECT_NEAR(misses("fifo", 2), row.fifo, .01) << row.capacity;
    EXPECT_NEAR(misses("never_evict", 2), row.never_evict, .01) << row.capacity;
    EXPECT_NEAR(misses("belady", 2), row.belady, .01) << row.capacity;
    EXPECT_NEAR(misses("belady", 10), row.belady_of_ten, .01) << row.capacity;
  }
}

// The misses that DELI's authors measured in the second epoch, with a FIFO that
// is filled by misses alone: CIFAR-10, 3 nodes of 11,667 samples (artifact of
// IC2E 2021, baseline-cache.csv, means of nine rows).
TEST(SimulatorTest, MissesWhatTheAuthorsOfDeliMeasured) {
  struct Row {
    std::uint64_t capacity;
    double missed;
  };
  constexpr Row kMeasured[] = {
      {2916, .9895}, {5833, .9536}, {8750, .8885}, {35001, .6640}};
  for (const Row& row : kMeasured) {
    EXPECT_NEAR(1 - hit_ratio(run(job_of(35001, 3, 2, "fifo", row.capacity))),
                row.missed, .01)
        << row.capacity;
  }
}

// Bagpipe's rule is Belady's with a limited view: the wider, the fewer misses,
// and with all of the run in view, the same.
TEST(SimulatorTest, AWiderWindowMissesLessUntilItIsBelady) {
  SimulationOptions options = job_of(6000, 3, 8, "windowed_belady", 1500);
  std::vector<std::uint64_t> gets;
  for (const AccessTime window : {1000, 6000, 12000, 24000, 48000}) {
    options.tiers[0].window = window;
    gets.push_back(total(run(options), &EpochCounts::gets));
  }
  const std::uint64_t belady =
      total(run(job_of(6000, 3, 8, "belady", 1500)), &EpochCounts::gets);
  const std::uint64_t lru =
      total(run(job_of(6000, 3, 8, "lru", 1500)), &EpochCounts::gets);

  EXPECT_TRUE(std::is_sorted(gets.rbegin(), gets.rend()));
  EXPECT_LT(gets[2], gets[0]);
  EXPECT_EQ(gets.back(), belady);
  EXPECT_LT(belady, lru);
}

// CoorDL: partitions that together hold everything are read from the store
// once.
TEST(SimulatorTest, PartitionsThatHoldAllReadTheStoreOnce) {
  SimulationOptions options = job_of(6000, 3, 5, "never_evict", 0);
  options.tiers[0] = {.policy = "never_evict", .capacity = 2000};
  options.scope = CacheScope::kPeers;
  options.placement = Placement::kFirstEpoch;

  const SimulationReport report = run(options);

  EXPECT_EQ(total(report, &EpochCounts::gets), 6000u);
  EXPECT_GT(total(report, &EpochCounts::peer_hits), 0u);
}

// Behind the tiers: all ranks find the samples that one has fetched.
TEST(SimulatorTest, ServersThatHoldAllReadTheStoreOnce) {
  SimulationOptions options = job_of(6000, 4, 5, "belady", 300);
  options.sizes = {100};
  const SimulationReport alone = run(options);
  options.peer_memory = PeerMemory{.bytes = 250000, .servers = 3};

  const SimulationReport report = run(options);

  EXPECT_EQ(total(report, &EpochCounts::gets), 6000u);
  EXPECT_EQ(report.epochs[0].gets, 6000u);
  // The tiers keep what they would have kept; servers answer what was fetched.
  for (std::size_t e = 0; e < report.epochs.size(); ++e) {
    EXPECT_EQ(report.epochs[e].tier_hits, alone.epochs[e].tier_hits);
  }
  EXPECT_EQ(total(report, &EpochCounts::peer_hits),
            total(alone, &EpochCounts::gets) - 6000);
}

// A share of the samples is drawn: the store is read once for those, and for
// the rest as without servers.
TEST(SimulatorTest, SmallServersHoldAShareOfTheSamples) {
  SimulationOptions options = job_of(20000, 4, 5, "belady", 500);
  options.sizes = {100};
  const auto alone =
      static_cast<double>(total(run(options), &EpochCounts::gets));
  // 0.9 x 3 x 333,333 bytes: 45 % of the data.
  options.peer_memory = PeerMemory{.bytes = 333333, .servers = 3};

  const auto gets =
      static_cast<double>(total(run(options), &EpochCounts::gets));

  EXPECT_NEAR(gets, .45 * 20000 + .55 * alone, .02 * alone);
}

TEST(SimulatorTest, AServerOnTheOwnNodeSendsThroughNoLink) {
  SimulationOptions options = job_of(400, 2, 4, "belady", 0);
  options.tiers.clear();
  options.sizes = {100};
  options.peer_memory = PeerMemory{.bytes = 1000000, .servers = 1};
  options.times = TimeOptions{.peer_seconds = 1};

  const SimulationReport report = run(options);

  // The second node reads all of its samples from the first.
  EXPECT_GT(report.epochs[1].seconds, 1);
  options.nodes = 1;
  EXPECT_EQ(run(options).epochs[1].seconds, 0);
}

// The bytes that zones charge for: to the server once, and from it, between
// nodes.
TEST(SimulatorTest, PeerBytesAreThoseBetweenNodes) {
  SimulationOptions options = job_of(400, 2, 4, "belady", 0);
  options.tiers.clear();
  options.sizes = {100};
  options.peer_memory = PeerMemory{.bytes = 1000000, .servers = 1};

  // Half of the reads are of the node that has no server.
  for (const EpochCounts& epoch : run(options).epochs) {
    EXPECT_EQ(epoch.peer_bytes, 200u * 100u);
  }
  options.nodes = 1;
  EXPECT_EQ(total(run(options), &EpochCounts::peer_bytes), 0u);
}

TEST(SimulatorTest, RefusesServersThatCannotBe) {
  SimulationOptions options = job_of(400, 2, 4, "belady", 10);
  const auto refusal = [&] {
    const auto report = simulate(options);
    return report.has_value() ? std::string() : report.error().message();
  };
  options.peer_memory = PeerMemory{.bytes = 100, .servers = 3};
  EXPECT_NE(refusal().find("3 servers of peers on 2 nodes"), std::string::npos);
  options.peer_memory->servers = 0;
  EXPECT_NE(refusal().find("take at least one"), std::string::npos);
  options.peer_memory->servers = 2;
  EXPECT_EQ(refusal(), "");
  options.scope = CacheScope::kPeers;
  EXPECT_NE(refusal().find("leave one of them out"), std::string::npos);
  options.scope = CacheScope::kNode;
  options.only_ranks = 1;
  EXPECT_NE(refusal().find("peers need all ranks"), std::string::npos);
}

// NoPFS' four regimes: the data S against the fastest tier d1, all tiers of a
// node D, and all nodes N·D.
TEST(SimulatorTest, TheFourRegimesOfNoPfs) {
  constexpr std::uint64_t kSamples = 8000;
  constexpr std::uint64_t kEpochs = 12;
  const auto report_of = [&](std::uint64_t ram, std::uint64_t disk) {
    SimulationOptions options = job_of(kSamples, 4, kEpochs, "never_evict", 0);
    options.tiers = {{.policy = "never_evict", .capacity = ram},
                     {.policy = "never_evict", .capacity = disk}};
    options.scope = CacheScope::kPeers;
    options.placement = Placement::kFrequency;
    return run(options);
  };
  const auto gets = [&](const SimulationReport& report) {
    return total(report, &EpochCounts::gets);
  };

  const SimulationReport in_ram = report_of(kSamples, 0);      // S < d1
  const SimulationReport on_node = report_of(1000, kSamples);  // d1 < S < D
  const SimulationReport on_nodes = report_of(1000, 3000);     // D < S < ND
  const SimulationReport nowhere = report_of(200, 600);        // ND < S

  EXPECT_EQ(gets(in_ram), kSamples);
  EXPECT_EQ(in_ram.epochs.back().tier_hits[1], 0u);
  EXPECT_EQ(gets(on_node), kSamples);
  EXPECT_GT(on_node.epochs.back().tier_hits[1], 0u);
  // A few samples are among the favourites of no node, and stay in the store.
  EXPECT_LT(gets(on_nodes), kSamples * 13 / 10);
  EXPECT_GT(on_nodes.epochs.back().peer_hits, 0u);
  EXPECT_GT(gets(nowhere), 2 * kSamples);
  EXPECT_LT(gets(nowhere), kEpochs * kSamples);
}

// Frequency is worth something: a node holds the samples that it reads most
// often.
TEST(SimulatorTest, FrequencyPlacementBeatsFirstComeOnOwnHits) {
  SimulationOptions options = job_of(8000, 8, 30, "never_evict", 0);
  options.tiers[0] = {.policy = "never_evict", .capacity = 400};
  const std::uint64_t first_come = total(run(options), &EpochCounts::gets);
  options.placement = Placement::kFrequency;
  const std::uint64_t by_frequency = total(run(options), &EpochCounts::gets);

  EXPECT_LT(by_frequency, first_come);
}

// One cache a node against one of an eighth for each of its eight ranks.
TEST(SimulatorTest, OneCacheANodeHitsWhatPrivateOnesCannot) {
  SimulationOptions options = job_of(8000, 1, 6, "never_evict", 4000);
  options.ranks = 8;
  options.global_batch = 320;
  const double shared = hit_ratio(run(options));
  options.scope = CacheScope::kRank;
  options.tiers[0].capacity = 500;
  const double own = hit_ratio(run(options));

  EXPECT_NEAR(shared, .5, .01);
  EXPECT_NEAR(own, .0625, .01);
}

TEST(SimulatorTest, WhatRamDropsOrRefusesGoesToDisk) {
  SimulationOptions options = job_of(1000, 1, 4, "belady", 0);
  options.tiers = {{.policy = "belady", .capacity = 100},
                   {.policy = "belady", .capacity = 300}};

  const SimulationReport report = run(options);

  const EpochCounts& last = report.epochs.back();
  EXPECT_NEAR(static_cast<double>(last.reads - last.gets), 400, 20);
  EXPECT_GT(last.tier_hits[0], 0u);
  EXPECT_GT(last.tier_hits[1], 0u);
}

TEST(SimulatorTest, SizesAreCountedInBytes) {
  SimulationOptions options = job_of(4, 1, 2, "never_evict", 0);
  options.global_batch = 4;
  options.sizes = {10, 20, 30, 40};
  options.tiers[0] = {.policy = "never_evict", .capacity = 100};

  const SimulationReport report = run(options);

  EXPECT_EQ(report.epochs[0].get_bytes, 100u);
  EXPECT_EQ(report.epochs[1].get_bytes, 0u);
}

TEST(SimulatorTest, SomeRanksStandForAll) {
  SimulationOptions options = job_of(40000, 4, 5, "belady", 5000);
  const double all = hit_ratio(run(options));
  options.only_ranks = 1;
  const SimulationReport one = run(options);

  EXPECT_EQ(one.epochs[0].reads, 10000u);
  EXPECT_NEAR(hit_ratio(one), all, .01);
}

TEST(SimulatorTest, SomeRanksHaveTheirShareOfTheLinks) {
  for (const std::uint32_t nodes : {1, 2}) {
    SimulationOptions options = job_of(8000, nodes, 1, "", 0);
    options.ranks = 8;
    options.scope = CacheScope::kRank;
    options.tiers.clear();
    options.sizes = {125000};  // 1 GB.
    options.times =
        TimeOptions{.bytes_per_second = 100e6, .store_bytes_per_second = 100e6};
    const double all = run(options).epochs[0].seconds;
    EXPECT_NEAR(all, 10, 0.1);
    options.only_ranks = 1;

    EXPECT_NEAR(run(options).epochs[0].seconds, all, 0.01 * all) << nodes;
  }
}

TEST(SimulatorTest, WhatCannotBeSimulatedSaysWhy) {
  const auto message = [](const auto& change) {
    SimulationOptions options = job_of(100, 2, 2, "lru", 10);
    change(options);
    const auto report = simulate(options);
    return report.has_value() ? std::string() : report.error().message();
  };
  using Options = SimulationOptions;

  EXPECT_EQ(message([](Options&) {}), "");
  EXPECT_NE(message([](Options& o) { o.samples = 0; }), "");
  EXPECT_NE(message([](Options& o) { o.epochs = 0; }), "");
  EXPECT_NE(message([](Options& o) { o.sizes = {1, 2}; }), "");
  EXPECT_NE(message([](Options& o) { o.nodes = 3; }), "");
  EXPECT_NE(message([](Options& o) { o.only_ranks = 5; }), "");
  EXPECT_NE(message([](Options& o) { o.tiers[0].policy = "mru"; }), "");
  EXPECT_NE(message([](Options& o) { o.placement = Placement::kFrequency; }),
            "");
  EXPECT_NE(message([](Options& o) { o.times = {.max_in_flight = 0}; }), "");
  EXPECT_NE(message([](Options& o) { o.costs = {1, 2}; }), "");
  EXPECT_NE(message([](Options& o) { o.requests = {1, 2}; }), "");
  EXPECT_NE(message([](Options& o) { o.unit = ReadUnit::kBlock; }), "");
}

// The one that is there names what is wrong, and nothing that is right.
TEST(SimulatorTest, APlacementSaysWhatItMissesOfATier) {
  SimulationOptions options = job_of(100, 2, 2, "lru", 10);
  options.placement = Placement::kFrequency;
  EXPECT_NE(simulate(options).error().message().find("this one is lru"),
            std::string::npos);
  options.tiers[0].policy = "never_evict";
  options.tiers[0].unit = CapacityUnit::kItems;
  const std::string said = simulate(options).error().message();
  EXPECT_NE(said.find("has items"), std::string::npos);
  EXPECT_EQ(said.find("never_evict"), std::string::npos);
}

TEST(SimulatorTest, CostsFillATierAndRequestsAreCounted) {
  SimulationOptions options;
  options.samples = 10;
  options.sizes = {7};
  options.costs = {100};
  options.requests = {2, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  options.global_batch = 10;
  options.epochs = 2;
  options.tiers = {{.policy = "never_evict", .capacity = 499}};
  const SimulationReport report = run(options);

  EXPECT_EQ(report.epochs[0].gets, 11u);
  EXPECT_EQ(report.epochs[0].get_bytes, 70u);
  EXPECT_EQ(report.epochs[1].get_bytes, 6u * 7u);  // Four fit.
  EXPECT_EQ(report.epochs[1].reads, 11u);
  EXPECT_EQ(report.epochs[1].gets + report.epochs[1].tier_hits[0], 11u);
}

// With equal sizes, RAM and disk together hit what one tier of both sizes
// would.
RC_GTEST_PROP(SimulatorProperty, BeladysTiersHitTogetherWhatOneOfBothDoes,
              (std::uint64_t seed)) {
  SimulationOptions options;
  options.samples = *rc::gen::inRange<std::uint64_t>(8, 90);
  options.order.seed = seed;
  options.ranks = options.nodes = *rc::gen::inRange<std::uint32_t>(1, 4);
  options.global_batch = options.ranks * *rc::gen::inRange<std::uint64_t>(1, 3);
  options.epochs = 6;
  const auto ram = *rc::gen::inRange<std::uint64_t>(0, 40);
  const auto disk = *rc::gen::inRange<std::uint64_t>(0, 40);
  const auto hits = [&](std::vector<std::uint64_t> capacities) {
    options.tiers.clear();
    for (const std::uint64_t capacity : capacities) {
      options.tiers.push_back(
          {.capacity = capacity, .unit = CapacityUnit::kItems});
    }
    std::vector<std::uint64_t> found;
    const auto report = simulate(options);
    RC_ASSERT(report.has_value());
    for (const EpochCounts& epoch : report->epochs) {
      found.push_back(epoch.reads - epoch.gets);
    }
    return found;
  };

  RC_ASSERT(hits({ram, disk}) == hits({ram + disk}));
}

}  // namespace
}  // namespace leat
