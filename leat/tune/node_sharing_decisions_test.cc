// Tests of the reasons for which shares change, and of the text about them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "leat/tune/node_sharing.h"
#include "leat/tune/testing/sharing_world.h"

namespace leat {
namespace {

using ::testing::HasSubstr;

constexpr JobSpeed kLightJob{.compute_ceiling = 100, .rate_per_thread = 100};
constexpr JobSpeed kHeavyJob{.compute_ceiling = 1300, .rate_per_thread = 100};

TEST(NodeSharingDecisionsTest, AGainIsFoundInThreeReports) {
  SharingWorld world({.threads = 8});
  world.come("a", kLightJob);
  world.come("b", kHeavyJob);
  const auto latest = [&](auto&& is_it) {
    const auto& all = world.sharing().decisions();
    return std::any_of(all.begin(), all.end(), [&](const Decision& decision) {
      return decision.job == "b" && is_it(decision);
    });
  };
  const auto is_expected = [](const Decision& d) {
    return d.expected_gain.has_value();
  };
  const auto is_found = [](const Decision& d) {
    return d.found_gain.has_value();
  };
  while (!latest(is_expected)) world.run(1);
  int reports = 0;
  for (; !latest(is_found) && reports < 10; ++reports) world.run(1);

  EXPECT_EQ(reports, 3);
}

TEST(NodeSharingDecisionsTest, EveryLineOfAChangeHearsWhatItGained) {
  SharingWorld world({.threads = 8, .in_flight = 64});
  world.come("a", kLightJob);
  world.come("b", {.compute_ceiling = 1300,
                   .rate_per_thread = 100,
                   .reads_per_sample = 1,
                   .latency_seconds = 0.1});
  world.run(60);

  std::map<double, int> lines;
  for (const Decision& decision : world.sharing().decisions()) {
    if (decision.job != "b" || !decision.expected_gain) continue;
    EXPECT_TRUE(decision.found_gain) << decision.reason;
    ++lines[decision.at_seconds];
  }
  EXPECT_TRUE(std::ranges::any_of(lines, [](const auto& change) {
    return change.second > 1;
  })) << "both threads and requests";
}

TEST(NodeSharingDecisionsTest,
     WhoWasHonestAndBeginsToLieIsNotHeldToWhatItNeeded) {
  SharingWorld world({.threads = 16});
  bool lies = false;
  for (const std::string job : {"a", "b", "c"}) world.come(job, kHeavyJob);
  world.come("liar", kLightJob, [&](JobReport& said) {
    if (lies) said.busy_seconds *= 10;
  });
  world.run(30);
  ASSERT_LE(world.threads_of("liar"), 2);

  lies = true;
  world.run(60);

  EXPECT_EQ(world.threads_of("liar"), 4) << "its even share";
}

// A thread more is less than a change of mind must gain otherwise.
TEST(NodeSharingDecisionsTest, WhatSomebodyLeavesIsGivenOutForLittle) {
  SharingWorld world({.threads = 40}, {.least_gain = 0.05});
  world.come("a", {.compute_ceiling = 10'000, .rate_per_thread = 100});
  world.come("b", kLightJob);
  world.run(60);
  ASSERT_EQ(world.threads_of("a"), 39);

  world.go("b");
  world.run(1);

  EXPECT_EQ(world.threads_of("a"), 40);
}

TEST(NodeSharingDecisionsTest, MoreCoresAreGivenOutAtOnce) {
  SharingWorld world({.threads = 4});
  world.come("a", kHeavyJob);
  world.come("b", kHeavyJob);
  world.run(30);

  world.sharing().set_resources({.threads = 8});
  world.run(1);

  EXPECT_EQ(world.threads_of("a") + world.threads_of("b"), 8);
}

TEST(NodeSharingDecisionsTest, ThatThereIsNothingToGainIsSaidOnce) {
  SharingWorld world({.threads = 8});
  world.come("a", kLightJob);
  world.come("b", kLightJob);
  for (const double rate :
       {100, 70, 50, 35}) {  // Never more than a thread less.
    world.truth_of("a").rate_per_thread = rate;
    world.run(60);
  }

  const auto& all = world.sharing().decisions();
  EXPECT_EQ(std::count_if(all.begin(), all.end(),
                          [](const Decision& decision) {
                            return decision.reason.starts_with("nothing to");
                          }),
            1);
}

TEST(NodeSharingDecisionsTest, WhatCannotBeDoneIsNotCountedAsDone) {
  constexpr NodeResources kLinked{.threads = 4, .bytes_per_second = 16e6};
  constexpr JobSpeed kReader{.compute_ceiling = 20000,
                             .reads_per_sample = 1,
                             .read_bytes_per_sample = 1000};
  SharingWorld world(kLinked);
  bool lies = false;
  const auto once = [&](JobReport& said) {
    if (lies) said.samples = 1e13;
    lies = false;
  };
  world.come("long", kReader, {}, {.samples_to_do = 1e8});
  world.come("short", kReader, once, {.samples_to_do = 1e6});
  world.run(20);

  lies = true;
  world.run(30);

  EXPECT_GE(world.grant_of("short").bytes_per_second, 10e6);
}

}  // namespace
}  // namespace leat
