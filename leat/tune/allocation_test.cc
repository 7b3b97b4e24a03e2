#include "leat/tune/allocation.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <iterator>
#include <numeric>
#include <random>

namespace leat {
namespace {

Claim training_bound(double ceiling, double rate_per_thread) {
  return {.speed = {.compute_ceiling = ceiling,
                    .rate_per_thread = rate_per_thread}};
}

double sum(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

/// Any claim of a job that makes sense.
Claim random_claim(std::mt19937_64& random, const NodeResources& node) {
  std::uniform_real_distribution<double> part(0, 1);
  Claim claim;
  claim.speed.compute_ceiling = 10 + 1000 * part(random);
  if (random() % 4 != 0) claim.speed.rate_per_thread = 5 + 300 * part(random);
  if (std::isfinite(node.in_flight) && random() % 4 != 0) {
    claim.speed.latency_seconds = 0.2 * part(random);
    claim.speed.reads_per_sample = 1;
  }
  for (std::size_t i = 0; i < node.bucket_bytes_per_second.size(); ++i) {
    if (random() % 3 == 0) claim.buckets.push_back(i);
  }
  if (std::isfinite(narrowest_link(node, claim)) && random() % 4 != 0) {
    claim.speed.read_bytes_per_sample = 2e5 * part(random);
  }
  if (node.cache_bytes > 0 && random() % 4 != 0) {
    claim.speed.dataset_bytes = node.cache_bytes * 3 * part(random);
    if (random() % 2 == 0) {  // Kept decoded.
      claim.speed.saved_seconds =
          0.95 * part(random) / claim.speed.rate_per_thread;
    }
  }
  if (random() % 6 == 0) claim.outside_ceiling = 500 * part(random);
  return claim;
}

NodeResources random_node(std::mt19937_64& random) {
  NodeResources node{.threads = static_cast<double>(1 + random() % 16)};
  if (random() % 2 == 0)
    node.in_flight = static_cast<double>(1 + random() % 64);
  if (random() % 2 == 0) {
    node.bytes_per_second = 1e6 * static_cast<double>(1 + random() % 50);
  }
  if (random() % 2 == 0) {
    for (std::size_t i = 1 + random() % 3; i > 0; --i) {
      node.bucket_bytes_per_second.push_back(
          1e6 * static_cast<double>(1 + random() % 25));
    }
  }
  if (random() % 2 == 0) {
    node.cache_bytes = 1e9 * static_cast<double>(1 + random() % 9);
  }
  return node;
}

std::vector<Claim> random_claims(std::mt19937_64& random,
                                 const NodeResources& node, std::size_t most) {
  std::vector<Claim> claims(1 + random() % most);
  for (Claim& claim : claims) claim = random_claim(random, node);
  return claims;
}

/// Calls `visit` with every way to split `total` into `parts` of at least
/// `least`, the rest left.
void for_each_split(int total, int least, std::size_t parts,
                    const std::function<void(const std::vector<int>&)>& visit) {
  std::vector<int> split(parts, least);
  const std::function<void(std::size_t, int)> place = [&](std::size_t i,
                                                          int left) {
    if (i == parts) return visit(split);
    for (int more = 0; more <= left; ++more) {
      split[i] = least + more;
      place(i + 1, left - more);
    }
  };
  place(0, total - least * static_cast<int>(parts));
}

TEST(PredictTest, TheLeastOfFourBoundsIsNamed) {
  const JobSpeed speed{.compute_ceiling = 1000,
                       .rate_per_thread = 100,
                       .reads_per_sample = 2,
                       .read_bytes_per_sample = 1e5,
                       .latency_seconds = 0.05,
                       .dataset_bytes = 1e9};

  EXPECT_EQ(predict(speed, {}).bound, Bound::kTraining);
  EXPECT_EQ(predict(speed, {.threads = 3}).rate, 300);
  EXPECT_EQ(predict(speed, {.threads = 3}).bound, Bound::kThreads);
  EXPECT_EQ(predict(speed, {.in_flight = 20}).rate, 200);
  EXPECT_EQ(predict(speed, {.in_flight = 20}).bound, Bound::kInFlight);
  EXPECT_EQ(predict(speed, {.bytes_per_second = 1e7}).rate, 100);
  EXPECT_EQ(predict(speed, {.bytes_per_second = 1e7}).bound, Bound::kBandwidth);
}

TEST(PredictTest, ACacheMultipliesBandwidthByDatasetOverWhatMisses) {
  const JobSpeed speed{.reads_per_sample = 1,
                       .read_bytes_per_sample = 1e5,
                       .latency_seconds = 0.1,
                       .dataset_bytes = 1e9};

  // b * d / (d - c), d - c = d / 4.
  EXPECT_DOUBLE_EQ(
      predict(speed, {.bytes_per_second = 1e7, .cache_bytes = 7.5e8}).rate,
      400);
  EXPECT_DOUBLE_EQ(predict(speed, {.in_flight = 4, .cache_bytes = 7.5e8}).rate,
                   160);
  EXPECT_EQ(predict(speed, {.bytes_per_second = 1, .cache_bytes = 1e9}).rate,
            kUnbounded);
}

TEST(AllocationTest, ThreadsGoWhereTheyLiftSpeed) {
  const NodeResources node{.threads = 8};
  // The first needs one thread and the second six.
  const std::vector<Claim> claims = {training_bound(100, 100),
                                     training_bound(600, 100)};

  const auto grants = allocate(node, claims, {});

  EXPECT_GE(predict(claims[0].speed, grants[0]).rate, 100);
  EXPECT_GE(predict(claims[1].speed, grants[1]).rate, 600);
}

TEST(AllocationTest, ObjectivesDiffer) {
  const NodeResources node{.threads = 6};
  // Alone: the first two at 2 threads, the third at 6.
  const std::vector<Claim> claims = {training_bound(200, 100),
                                     training_bound(200, 100),
                                     training_bound(600, 100)};

  const auto most = normalised_rates(
      node, claims, allocate(node, claims, {Objective::kThroughput, 0.5}));
  const auto fair = normalised_rates(
      node, claims, allocate(node, claims, {Objective::kFairness, 0.5}));

  EXPECT_NEAR(sum(most), 1 + 1 + 2 / 6.0, 1e-9);
  EXPECT_NEAR(fair.front(), 0.5, 1e-9);
}

TEST(AllocationTest, OfTwoThatAreAsLowTheOneThatClimbsFurtherIsRaised) {
  const NodeResources node{.threads = 5};
  // One thread brings each of the first two a fifth of its speed alone. A
  // second one brings the first to its other nodes' limit, .26, and the second
  // to .4; the third needs one and the fourth is as slow as the first.
  std::vector<Claim> claims = {
      training_bound(500, 100), training_bound(500, 100),
      training_bound(300, 1000), training_bound(500, 100)};
  claims[0].outside_ceiling = 130;
  claims[3].outside_ceiling = 130;

  const auto grants = allocate(node, claims, {Objective::kFairness, 0});

  EXPECT_EQ(grants[1].threads, 2);
}

TEST(AllocationTest, AJobIsNotGivenWhatItsOtherNodesCannotFollow) {
  const NodeResources node{.threads = 8};
  std::vector<Claim> claims = {training_bound(800, 100),
                               training_bound(800, 100)};
  claims[0].outside_ceiling = 150;

  const auto grants = allocate(node, claims, {});

  EXPECT_LE(grants[0].threads, 3);  // Two, and one of headroom.
  EXPECT_GE(grants[1].threads, 5);
}

TEST(AllocationTest, CacheGoesWhereItSavesMostReading) {
  const NodeResources node{
      .threads = 8, .bytes_per_second = 1e8, .cache_bytes = 1e9};
  // Both read 1 MB a sample; the second reads its small dataset ten times as
  // often.
  std::vector<Claim> claims(2, training_bound(1000, 1000));
  for (Claim& claim : claims) claim.speed.read_bytes_per_sample = 1e6;
  claims[0].speed.dataset_bytes = 1e10;
  claims[1].speed.dataset_bytes = 1e9;

  const auto grants = allocate(node, claims, {});

  EXPECT_NEAR(grants[1].cache_bytes, 1e9, 1e6);
  EXPECT_NEAR(predict(claims[1].speed, grants[1]).rate, 1000, 1e-6);
  EXPECT_NEAR(predict(claims[0].speed, grants[0]).rate, 100, 1e-6);
}

TEST(PredictTest, WhatIsKeptDecodedSavesThreads) {
  const JobSpeed speed{
      .rate_per_thread = 100, .dataset_bytes = 1e9, .saved_seconds = 0.008};
  const auto rate = [&](double cache_bytes) {
    return predict(speed, {.threads = 2, .cache_bytes = cache_bytes}).rate;
  };
  EXPECT_DOUBLE_EQ(rate(0), 200);
  EXPECT_NEAR(rate(5e8), 2 / 0.006, 1e-9);
  EXPECT_NEAR(rate(1e9), 2 / 0.002, 1e-9);
  EXPECT_NEAR(rate(2e9), 2 / 0.002, 1e-9);
}

TEST(AllocationTest, CacheGoesWhereItSavesMostDecoding) {
  const NodeResources node{.threads = 4, .cache_bytes = 1e9};
  // Both decode for 20 ms; the second's cache holds decoded samples.
  std::vector<Claim> claims(2, training_bound(1000, 50));
  for (Claim& claim : claims) {
    claim.speed.dataset_bytes = 1e9;
    claim.speed.read_bytes_per_sample = 1e5;
  }
  claims[1].speed.saved_seconds = 0.016;

  const auto grants = allocate(node, claims, {});

  EXPECT_NEAR(grants[1].cache_bytes, 1e9, 1e6);
  EXPECT_NEAR(predict(claims[1].speed, grants[1]).rate,
              grants[1].threads / 0.004, 1e-3);
}

TEST(AllocationTest, CountsNoThreadsThatItsUserDoesNotAllow) {
  const NodeResources node{.threads = 8, .cache_bytes = 1e9};
  // Both decode for 10 ms and save nine; without its cache the first would
  // need more threads than the two that it may have.
  std::vector<Claim> claims(2, training_bound(3000, 100));
  for (Claim& claim : claims) {
    claim.speed.dataset_bytes = 1e9;
    claim.speed.saved_seconds = 0.009;
  }
  claims[0].most_threads = 2;

  const auto grants = allocate(node, claims, {Objective::kThroughput, 0});

  EXPECT_LE(grants[0].threads, 2);
  double best = 0;
  for (double cache = 0; cache <= 1e9; cache += 1e8) {
    const std::vector<Grant> split = {
        {.threads = 2, .cache_bytes = cache},
        {.threads = 6, .cache_bytes = 1e9 - cache}};
    best = std::max(best, sum(normalised_rates(node, claims, split)));
  }
  EXPECT_GE(sum(normalised_rates(node, claims, grants)), best - 0.01);
}

/// Reads 1 kB a sample, of one bucket or none.
Claim reader_of(double ceiling, std::vector<std::size_t> buckets = {}) {
  return {.speed = {.compute_ceiling = ceiling, .read_bytes_per_sample = 1000},
          .buckets = std::move(buckets)};
}

TEST(AllocationTest, EachBucketIsSharedByThoseThatReadIt) {
  const NodeResources node{.threads = 8,
                           .bytes_per_second = 100e6,
                           .bucket_bytes_per_second = {10e6, 30e6}};
  const std::vector<Claim> claims = {reader_of(2000, {0}),
                                     reader_of(90000, {0}),
                                     reader_of(90000, {1}), reader_of(40000)};

  EXPECT_EQ(rate_alone(node, claims[1]), 10000);
  const auto even = even_split(node, claims);
  EXPECT_EQ(even[0].bytes_per_second, 5e6);
  EXPECT_EQ(even[2].bytes_per_second, 25e6);

  const auto grants = allocate(node, claims, {});

  const auto rate = [&](std::size_t i) {
    return predict(claims[i].speed, grants[i]).rate;
  };
  EXPECT_NEAR(rate(0), 2000, 1e-6);
  EXPECT_NEAR(rate(1), 8000, 1e-6) << "what the first leaves of its bucket";
  EXPECT_NEAR(rate(2), 30000, 1e-6);
  EXPECT_NEAR(rate(3), 40000, 1e-6) << "a bucket without a limit";
}

TEST(AllocationTest, WhoReadsTwoBucketsIsWithinBoth) {
  const NodeResources node{.threads = 8,
                           .bucket_bytes_per_second = {10e6, 30e6}};
  const std::vector<Claim> claims = {reader_of(90000, {0, 1}),
                                     reader_of(90000, {1})};

  const auto grants = allocate(node, claims, {});

  EXPECT_LE(grants[0].bytes_per_second, 10e6 * (1 + 1e-9));
  EXPECT_LE(grants[0].bytes_per_second + grants[1].bytes_per_second,
            30e6 * (1 + 1e-9));
  EXPECT_GE(grants[1].bytes_per_second, 20e6 * (1 - 1e-9));
}

TEST(AllocationTest, WhatNothingBoundsGetsItsEvenShareAndTakesNoMore) {
  const NodeResources node{.threads = 8, .in_flight = 40};
  const std::vector<Claim> claims = {Claim{}, training_bound(1000, 100)};

  const auto grants = allocate(node, claims, {});

  EXPECT_EQ(grants[0].threads, 4);
  EXPECT_EQ(grants[0].in_flight, 20);
  EXPECT_EQ(grants[1].threads, 4);
}

TEST(AllocationTest, MoreJobsThanThreadsGetOneEach) {
  const NodeResources node{.threads = 2, .in_flight = 2};
  const std::vector<Claim> claims(5, training_bound(1000, 100));

  for (const Grant& grant : allocate(node, claims, {})) {
    EXPECT_EQ(grant.threads, 1);
    EXPECT_EQ(grant.in_flight, 1);
  }
}

RC_GTEST_PROP(AllocationProperty, OfThreadsAloneItIsTheBestOfAllSplits,
              (std::uint64_t seed, bool is_fair)) {
  std::mt19937_64 random(seed);
  const Objective objective =
      is_fair ? Objective::kFairness : Objective::kThroughput;
  const NodeResources node{.threads = static_cast<double>(4 + random() % 8)};
  const std::vector<Claim> claims = random_claims(random, node, 4);

  std::vector<double> best(claims.size(), 0);
  for_each_split(
      static_cast<int>(node.threads), 1, claims.size(),
      [&](const std::vector<int>& split) {
        std::vector<Grant> grants;
        for (const int threads : split) {
          grants.push_back({.threads = static_cast<double>(threads)});
        }
        const auto rates = normalised_rates(node, claims, grants);
        if (is_better(objective, rates, best)) best = rates;
      });
  const auto found =
      normalised_rates(node, claims, allocate(node, claims, {objective, 0}));

  RC_ASSERT(!is_better(objective, best, found));
}

constexpr Objective kObjectives[] = {Objective::kThroughput,
                                     Objective::kFairness};

/// The best of a grid of threads, requests, bandwidth and cache, by each of
/// kObjectives.
std::vector<std::vector<double>> best_of_grid(
    const NodeResources& node, const std::vector<Claim>& claims) {
  constexpr int kRequestParts = 10;
  constexpr int kBandwidthParts = 8;
  constexpr int kCacheParts = 8;
  std::vector<std::vector<double>> best(std::size(kObjectives),
                                        std::vector<double>(claims.size(), 0));
  const auto part = [](double of, int parts, int given) {
    return of * given / parts;
  };
  for_each_split(
      static_cast<int>(node.threads), 1, claims.size(), [&](auto& t) {
        for_each_split(kRequestParts, 1, claims.size(), [&](auto& k) {
          for_each_split(kBandwidthParts, 0, claims.size(), [&](auto& b) {
            for_each_split(kCacheParts, 0, claims.size(), [&](auto& c) {
              std::vector<Grant> grants;
              for (std::size_t i = 0; i < claims.size(); ++i) {
                grants.push_back(
                    {.threads = static_cast<double>(t[i]),
                     .in_flight = part(node.in_flight, kRequestParts, k[i]),
                     .bytes_per_second =
                         part(node.bytes_per_second, kBandwidthParts, b[i]),
                     .cache_bytes = part(node.cache_bytes, kCacheParts, c[i])});
              }
              const auto rates = normalised_rates(node, claims, grants);
              for (std::size_t o = 0; o < best.size(); ++o) {
                if (is_better(kObjectives[o], rates, best[o])) best[o] = rates;
              }
            });
          });
        });
      });
  return best;
}

TEST(AllocationTest, OfAllTogetherItIsNearTheBestOfAGrid) {
  constexpr int kCases = 24;
  std::array<double, std::size(kObjectives)> behind{};
  for (int seed = 0; seed < kCases; ++seed) {
    std::mt19937_64 random(static_cast<std::uint64_t>(seed));
    const NodeResources node{
        .threads = static_cast<double>(2 + random() % 3),
        .in_flight = static_cast<double>(20 + random() % 40),
        .bytes_per_second = 1e7,
        .cache_bytes = 1e9};
    const std::vector<Claim> claims = random_claims(random, node, 2);
    const auto best = best_of_grid(node, claims);

    for (std::size_t o = 0; o < behind.size(); ++o) {
      const auto found = normalised_rates(
          node, claims, allocate(node, claims, {kObjectives[o], 0}));
      const double gap = relative_gain(kObjectives[o], best[o], found);

      EXPECT_LE(gap, 0.05) << "seed " << seed;
      behind[o] += std::max(0.0, gap);
    }
  }
  for (const double sum : behind) EXPECT_LE(sum / kCases, 0.003);
}

RC_GTEST_PROP(AllocationProperty, KeepsWithinTheNodeAndAboveTheFloor,
              (std::uint64_t seed, bool is_fair)) {
  std::mt19937_64 random(seed);
  const NodeResources node = random_node(random);
  std::vector<Claim> claims = random_claims(random, node, 8);
  for (Claim& claim : claims) {
    if (random() % 4 == 0) {
      claim.most_cache_bytes =
          node.cache_bytes / static_cast<double>(2 + random() % 8);
    }
    if (random() % 4 == 0) {
      claim.most_threads = static_cast<double>(1 + random() % 8);
    }
  }
  const auto count = static_cast<double>(claims.size());
  const Objective objective =
      is_fair ? Objective::kFairness : Objective::kThroughput;
  const double floor = static_cast<double>(random() % 11) / 10;

  const auto grants = allocate(node, claims, {objective, floor});
  const auto even = even_split(node, claims);

  Grant used{.threads = 0, .in_flight = 0};
  const std::vector<double> links = links_of(node);
  std::vector<double> read(links.size(), 0);
  for (std::size_t i = 0; i < claims.size(); ++i) {
    used.threads += grants[i].threads;
    used.in_flight += grants[i].in_flight;
    for_each_link(claims[i], [&](std::size_t link) {
      read[link] += grants[i].bytes_per_second;
    });
    used.cache_bytes += grants[i].cache_bytes;
    RC_ASSERT(grants[i].threads >= 1 && grants[i].in_flight >= 1);
    RC_ASSERT(grants[i].cache_bytes <= claims[i].most_cache_bytes * (1 + 1e-9));
    RC_ASSERT(grants[i].threads == std::floor(grants[i].threads));
    const auto allowed = [&](Grant grant) {
      grant.threads = std::min(grant.threads, claims[i].most_threads);
      return grant;
    };
    const double least =
        std::min(predict(claims[i].speed, allowed(even[i])).rate,
                 claims[i].outside_ceiling);
    // Requests are whole: one of them may be less than was asked for.
    Grant given = allowed(grants[i]);
    given.in_flight += 1;
    RC_ASSERT(predict(claims[i].speed, given).rate >=
              floor * least * (1 - 1e-6));
  }
  RC_ASSERT(used.threads <= std::max(node.threads, count));
  RC_ASSERT(used.in_flight <= std::max(node.in_flight, count));
  for (std::size_t link = 0; link < links.size(); ++link) {
    RC_ASSERT(read[link] <= links[link] * (1 + 1e-9));
  }
  RC_ASSERT(used.cache_bytes <= node.cache_bytes * (1 + 1e-9));
  RC_ASSERT(!is_better(objective, normalised_rates(node, claims, even),
                       normalised_rates(node, claims, grants)));
}

TEST(AllocationTest, TheFloorIsOfWhatAnEvenSplitGivesWithItsRemainder) {
  // Three threads and two, evenly; the second gains most by four.
  const NodeResources node{.threads = 5};
  const std::vector<Claim> claims = {training_bound(5000, 100),
                                     training_bound(400, 100)};

  const auto grants = allocate(node, claims, {Objective::kThroughput, 0.5});

  EXPECT_EQ(grants[0].threads, 2) << "one would be a third";
  EXPECT_EQ(grants[1].threads, 3);
}

// Five that need a small part of a request each have a whole one, and the sixth
// would have two too few.
TEST(AllocationTest, WholeRequestsBreakNoFloorByMoreThanOne) {
  const NodeResources node{.threads = 3,
                           .in_flight = 39,
                           .bytes_per_second = 6e6,
                           .cache_bytes = 3e9};
  std::vector<Claim> claims(6);
  claims[0].speed = {.compute_ceiling = 548.368,
                     .rate_per_thread = 147.768,
                     .reads_per_sample = 1,
                     .read_bytes_per_sample = 29136.3,
                     .latency_seconds = 0.0206746};
  claims[0].outside_ceiling = 398.921;
  claims[1].speed = {.compute_ceiling = 758.142,
                     .reads_per_sample = 1,
                     .latency_seconds = 0.145857,
                     .dataset_bytes = 5.03074e8};
  claims[2].speed = {.compute_ceiling = 650.95,
                     .rate_per_thread = 9.53366,
                     .reads_per_sample = 1,
                     .read_bytes_per_sample = 51753,
                     .latency_seconds = 0.00689945,
                     .dataset_bytes = 7.17243e8,
                     .saved_seconds = 0.0705513};
  claims[3].speed = {.compute_ceiling = 376.829,
                     .rate_per_thread = 178.485,
                     .dataset_bytes = 7.57468e9,
                     .saved_seconds = 0.00353133};
  claims[3].outside_ceiling = 392.189;
  claims[4].speed = {.compute_ceiling = 791.298,
                     .rate_per_thread = 29.8483,
                     .reads_per_sample = 1,
                     .latency_seconds = 0.0206998,
                     .dataset_bytes = 2.79376e9,
                     .saved_seconds = 0.0260387};
  claims[4].outside_ceiling = 127.18;
  claims[5].speed = {.compute_ceiling = 367.682,
                     .rate_per_thread = 233.892,
                     .reads_per_sample = 1,
                     .read_bytes_per_sample = 171480,
                     .latency_seconds = 0.172634};
  claims[5].most_cache_bytes = 7.5e8;
  const auto even = even_split(node, claims);

  const auto grants =
      allocate(node, claims, {Objective::kThroughput, /*floor=*/1});

  for (std::size_t i = 0; i < claims.size(); ++i) {
    Grant one_more = grants[i];
    one_more.in_flight += 1;
    EXPECT_GE(predict(claims[i].speed, one_more).rate,
              (1 - 1e-6) * std::min(predict(claims[i].speed, even[i]).rate,
                                    claims[i].outside_ceiling))
        << i;
  }
}

TEST(AllocationTest, WhereTheLeastCannotGainOthersMay) {
  const std::vector<double> now = {0.3, 0.4, 0.5};
  const auto gain = [&](const std::vector<double>& then) {
    return relative_gain(Objective::kFairness, then, now);
  };

  EXPECT_NEAR(gain({0.33, 0.4, 0.5}), 0.1, 1e-9);
  EXPECT_NEAR(gain({0.3, 0.4, 0.75}), 0.5, 1e-9);
  EXPECT_EQ(gain({0.3, 0.35, 0.9}), 0) << "at another's cost";
  EXPECT_LT(gain({0.2, 0.8, 0.9}), 0);
}

TEST(AllocationTest, TheFloorIsKeptOrItIsNot) {
  const NodeResources node{.threads = 8};
  const std::vector<Claim> claims = {training_bound(800, 100),
                                     training_bound(800, 100)};
  const auto keeps = [&](double threads, double floor) {
    return keeps_floor(node, claims,
                       std::vector<Grant>{{.threads = threads}, {.threads = 4}},
                       {Objective::kFairness, floor});
  };

  EXPECT_TRUE(keeps(2, 0.5));
  EXPECT_FALSE(keeps(1, 0.5));
  EXPECT_TRUE(keeps(1, 0.25));
  EXPECT_FALSE(keeps(3, 1));
}

}  // namespace
}  // namespace leat
