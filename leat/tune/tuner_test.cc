#include "leat/tune/tuner.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "leat/tune/testing/synthetic_pipeline.h"

namespace leat {
namespace {

constexpr Settings kMisconfigured{.threads = 1, .in_flight = 1};

Observation limits(std::size_t threads = 8, std::size_t in_flight = 512,
                   double cores = 2) {
  Observation limits;
  limits.most_threads = threads;
  limits.most_in_flight = in_flight;
  limits.cores = cores;
  limits.memory_bytes = std::uint64_t{1} << 30;
  return limits;
}

/// One loader and its tuner, side by side.
struct Bench {
  SyntheticPipeline pipeline;
  Tuner tuner;
  std::vector<Decision> lines = {};

  void run(double seconds, double every = 1) {
    for (double t = 0; t < seconds; t += every) {
      const Observation& now = pipeline.run(every);
      Tuner::Step step = tuner.observe(now);
      ASSERT_LE(step.settings.threads, now.most_threads);
      ASSERT_LE(step.settings.in_flight, now.most_in_flight);
      ASSERT_GE(step.settings.threads, 1u);
      ASSERT_GE(step.settings.in_flight, 1u);
      pipeline.set(step.settings);
      lines.insert(lines.end(), step.lines.begin(), step.lines.end());
    }
  }
};

Bench bench_of(const SyntheticWorld& world, Settings start = kMisconfigured,
               Observation most = limits(), std::uint64_t seed = 1) {
  return {.pipeline = SyntheticPipeline(world, start, most, seed), .tuner = {}};
}

std::string all(const Bench& bench) {
  std::string text;
  for (const Decision& line : bench.lines) text += to_string(line) + "\n";
  return text;
}

struct Case {
  std::string name;
  SyntheticWorld world;
};

std::vector<Case> five_pipelines() {
  return {{"images",
           {.latency_seconds = 0.03,
            .bytes_per_read = 110e3,
            .task_seconds = 0.004,
            .noise = 0.03}},
          {"tar shards",
           {.latency_seconds = 0.05,
            .reads_per_sample = 0.02,
            .bytes_per_read = 8e6,
            .store_bytes_per_second = 200e6,
            .task_seconds = 0.0002,
            .noise = 0.03}},
          {"token windows",
           {.latency_seconds = 0.02,
            .bytes_per_read = 8e3,
            .task_seconds = 2e-5,
            .training_seconds = 0.001,
            .noise = 0.03}},
          {"many tiny objects",
           {.latency_seconds = 0.055,
            .bytes_per_read = 2e3,
            .task_seconds = 1e-4,
            .noise = 0.03}},
          {"decode-heavy",
           {.latency_seconds = 0.01,
            .bytes_per_read = 500e3,
            .task_seconds = 0.03,
            .noise = 0.03}}};
}

TEST(Tuner, BringsFiveMisconfiguredPipelinesNearTheirBestIn30Seconds) {
  for (const Case& pipeline : five_pipelines()) {
    Bench bench = bench_of(pipeline.world);

    bench.run(30);

    EXPECT_GE(bench.pipeline.speed(), 0.9 * bench.pipeline.best())
        << pipeline.name << "\n"
        << all(bench);
    EXPECT_FALSE(bench.lines.empty()) << pipeline.name;
  }
}

// Pieces of 50 samples each, four a second: two of them more or less are a
// quarter of the samples of two seconds.
TEST(Tuner, JudgesNoChangeByAFewReads) {
  Bench bench = bench_of({.latency_seconds = 0.5,
                          .reads_per_sample = 0.02,
                          .bytes_per_read = 8e6,
                          .store_bytes_per_second = 32e6,
                          .task_seconds = 0.0002});
  int judged = 0;
  for (double t = 0; t < 40; t += 0.5) {
    const Observation now = bench.pipeline.run(0.5);
    const Tuner::Step step = bench.tuner.observe(now);
    bench.pipeline.set(step.settings);
    for (const Decision& line : step.lines) {
      if (!line.found_gain) continue;
      ++judged;
      EXPECT_GE(now.at_seconds - line.at_seconds, 16 / 4.0) << to_string(line);
    }
  }
  EXPECT_GT(judged, 0);
}

TEST(Tuner, FindsItsWayAgainIn15SecondsWhenTheWorldChanges) {
  const SyntheticWorld start{.latency_seconds = 0.005,
                             .task_seconds = 0.001,
                             .training_seconds = 0.002,
                             .noise = 0.02};
  SyntheticWorld slow = start;
  slow.latency_seconds = 0.08;
  SyntheticWorld hungry = start;
  hungry.training_seconds /= 4;
  SyntheticWorld crowded = hungry;
  crowded.cores = 1;
  const std::vector<std::vector<Case>> stories = {
      {{"latency", slow}},
      {{"consumer", hungry}, {"neighbour", crowded}, {"alone again", hungry}}};
  for (const std::vector<Case>& story : stories) {
    Bench bench = bench_of(start);
    bench.run(30);
    for (const Case& next : story) {
      bench.pipeline.change(next.world);
      bench.run(15);
      EXPECT_GE(bench.pipeline.speed(), 0.9 * bench.pipeline.best())
          << next.name << "\n"
          << all(bench);
    }
  }
}

TEST(Tuner, TakesMoreThreadsThanCoresOnlyBesideOthers) {
  SyntheticWorld world{.latency_seconds = 0.005, .task_seconds = 0.01};
  Bench bench = bench_of(world, kMisconfigured, limits(4));
  bench.run(60);
  EXPECT_EQ(bench.pipeline.run(1).threads, 2u) << all(bench);

  world.others = 1;
  bench.pipeline.change(world);
  bench.run(15);

  EXPECT_GE(bench.pipeline.speed(), 0.9 * bench.pipeline.best()) << all(bench);
  EXPECT_GT(bench.pipeline.run(1).threads, 2u);
}

// Not all of three cores is used, but a task has nine tenths of one.
TEST(Tuner, TakesNoMoreThreadsThanCoresForTasksThatHaveOne) {
  Observation most = limits(4);
  most.cores = 3;
  Bench bench = bench_of({.latency_seconds = 0.005,
                          .task_seconds = 0.01,
                          .cores = 3,
                          .others = 0.4},
                         kMisconfigured, most);
  bench.run(60);
  EXPECT_EQ(bench.pipeline.run(1).threads, 3u) << all(bench);
}

TEST(Tuner, DoesNothingWhereTrainingIsTheBottleneck) {
  Bench bench = bench_of({.latency_seconds = 0.005,
                          .task_seconds = 0.001,
                          .training_seconds = 0.01,
                          .noise = 0.05},
                         {.threads = 2, .in_flight = 128});

  bench.run(600);

  EXPECT_EQ(all(bench), "");
  EXPECT_TRUE(bench.tuner.is_settled());
  ASSERT_TRUE(bench.tuner.explanation());
  EXPECT_EQ(bench.tuner.explanation()->bottleneck, Bottleneck::kTraining);
}

TEST(Tuner, TakesBackWhatBroughtNothingAndTriesLessAndLessOften) {
  // 4 requests fill the link: the model cannot know.
  Bench bench = bench_of({.latency_seconds = 0.02,
                          .bytes_per_read = 100e3,
                          .store_bytes_per_second = 20e6,
                          .task_seconds = 1e-4},
                         {.threads = 2, .in_flight = 8});

  bench.run(1000);

  const Settings now{.threads = 2, .in_flight = 8};
  EXPECT_EQ(bench.tuner.observe(bench.pipeline.run(1)).settings.threads,
            now.threads);
  // 10, 20, 40, … 320 s: not a hundred tries.
  EXPECT_GE(bench.tuner.decisions().size(), 4u) << all(bench);
  EXPECT_LE(bench.tuner.decisions().size(), 24u) << all(bench);
  EXPECT_LE(bench.pipeline.run(1).in_flight, 16u);
  EXPECT_NE(all(bench).find("taken back"), std::string::npos) << all(bench);
  const std::optional<Explanation> why = bench.tuner.explanation();
  ASSERT_TRUE(why);
  EXPECT_EQ(why->bottleneck, Bottleneck::kStore);
  for (const NextUnit& unit : why->next) {
    if (unit.name == "connection") {
      EXPECT_LT(unit.gain.value_or(1), 0.01);
    }
  }
}

TEST(Tuner, TriesAgainAtOnceWhatFailedInAnotherWorld) {
  SyntheticWorld world{.latency_seconds = 0.02,
                       .bytes_per_read = 100e3,
                       .store_bytes_per_second = 20e6,
                       .task_seconds = 1e-4};
  Bench bench = bench_of(world, {.threads = 2, .in_flight = 8});
  bench.run(500);  // By now it tries once in minutes.
  const std::size_t before = bench.pipeline.run(1).in_flight;

  world.store_bytes_per_second *= 50;
  bench.pipeline.change(world);
  bench.run(15);

  EXPECT_GE(bench.pipeline.speed(), 0.9 * bench.pipeline.best())
      << before << "\n"
      << all(bench);
}

TEST(Tuner, SaysWhatItExpectedAndWhatItFound) {
  Bench bench = bench_of({.latency_seconds = 0.02,
                          .task_seconds = 1e-4,
                          .training_seconds = 0.002});

  bench.run(10);

  ASSERT_FALSE(bench.tuner.decisions().empty());
  const Decision& first = bench.tuner.decisions().front();
  EXPECT_EQ(first.setting, Setting::kInFlight);
  EXPECT_EQ(first.before, 1);
  EXPECT_GT(first.after, 9);
  EXPECT_NE(first.reason.find("max_in_flight"), std::string::npos);
  ASSERT_TRUE(first.expected_gain);
  EXPECT_NEAR(*first.expected_gain, 9, 0.5);  // 50/s to 500/s.
  ASSERT_TRUE(first.found_gain);
  EXPECT_NEAR(*first.found_gain, 9, 0.5);
}

TEST(Tuner, IsNeverBeyondWhatMemoryHolds) {
  Observation most = limits();
  most.memory_bytes = 100 << 20;
  Bench bench = bench_of(
      {.latency_seconds = 0.1, .bytes_per_read = 8 << 20, .task_seconds = 0},
      kMisconfigured, most);

  bench.run(60);

  EXPECT_EQ(bench.pipeline.run(1).in_flight, 12u) << all(bench);
}

TEST(Tuner, FillsALinkWithLongReadsNotBeforeTrainingHasABatch) {
  // Pieces of shards: connections that share a link look like slow ones.
  const SyntheticWorld world{.latency_seconds = 1.3,
                             .reads_per_sample = 0.02,
                             .bytes_per_read = 8 << 20,
                             .task_seconds = 0.0002};
  const Settings start{.threads = 2, .in_flight = 32};
  Bench bench = bench_of(world, start);
  for (int second = 0; second < 10; ++second) {
    Observation now = bench.pipeline.run(1);
    now.batches = 0;
    bench.pipeline.set(bench.tuner.observe(now).settings);
    ASSERT_EQ(bench.pipeline.observed().in_flight, 32u) << second;
  }
  bench.run(2);
  EXPECT_EQ(bench.pipeline.observed().in_flight, 64u) << all(bench);
  bench.run(60);
  EXPECT_GE(bench.pipeline.observed().in_flight, 120u) << all(bench);
}

TEST(Tuner, GivesBackAtOnceWhatIsNoLongerAllowed) {
  Bench bench = bench_of({.latency_seconds = 0.05, .task_seconds = 0.002});
  bench.run(30);
  ASSERT_GT(bench.pipeline.run(1).in_flight, 4u);

  bench.pipeline.set_limits(1, 4);
  const Tuner::Step step = bench.tuner.observe(bench.pipeline.run(1));

  EXPECT_EQ(step.settings.threads, 1u);
  EXPECT_EQ(step.settings.in_flight, 4u);
  ASSERT_FALSE(step.lines.empty());
  EXPECT_EQ(step.lines.back().reason, "no more is allowed");
}

TEST(Tuner, UsesAtOnceWhatItIsAllowedMoreOf) {
  Bench bench = bench_of({.latency_seconds = 0.05, .task_seconds = 0.0002},
                         kMisconfigured, limits(1, 8));
  bench.run(120);
  ASSERT_EQ(bench.pipeline.run(1).in_flight, 8u);

  bench.pipeline.set_limits(8, 512);
  bench.run(15);

  EXPECT_GE(bench.pipeline.speed(), 0.9 * bench.pipeline.best()) << all(bench);
}

TEST(Tuner, AnIdleLoopTeachesNothing) {
  Bench bench = bench_of({.latency_seconds = 0.05, .task_seconds = 0.002});
  bench.run(30);
  const std::size_t before = bench.lines.size();
  Observation now = bench.pipeline.run(1);
  (void)bench.tuner.observe(now);
  Settings asked;

  for (int i = 0; i < 100; ++i) {  // A validation: nobody calls next().
    now.at_seconds += 1;
    const Tuner::Step step = bench.tuner.observe(now);
    asked = step.settings;
    EXPECT_TRUE(step.lines.empty());
  }

  EXPECT_EQ(asked.threads, now.threads);
  EXPECT_EQ(asked.in_flight, now.in_flight);
  EXPECT_EQ(bench.lines.size(), before);
}

TEST(Tuner, ARecordedRunReplaysToTheSameDecisions) {
  SyntheticPipeline pipeline(
      {.latency_seconds = 0.03, .task_seconds = 0.002, .noise = 0.05},
      kMisconfigured, limits());
  Tuner live;
  std::vector<std::string> trace;
  for (int i = 0; i < 60; ++i) {
    const Observation& now = pipeline.run(1);
    trace.push_back(to_json(now));
    pipeline.set(live.observe(now).settings);
  }

  Tuner replayed;
  for (const std::string& line : trace) {
    const Result<Observation> now = parse_observation(line);
    ASSERT_TRUE(now) << now.error().message();
    (void)replayed.observe(*now);
  }

  ASSERT_FALSE(live.decisions().empty());
  ASSERT_EQ(live.decisions().size(), replayed.decisions().size());
  for (std::size_t i = 0; i < live.decisions().size(); ++i) {
    EXPECT_EQ(to_string(live.decisions()[i]),
              to_string(replayed.decisions()[i]));
  }
}

/// Objects of 64 MiB over connections of 4 MB/s, four of which are planned
/// ahead.
SyntheticWorld large_objects() {
  return {.latency_seconds = 0.05,
          .connection_bytes_per_second = 4e6,
          .range_bytes = 64 << 20,
          .bytes_ahead = 256 << 20,
          .task_seconds = 1e-3};
}

Observation limits_with_parts() {
  Observation most = limits();
  most.part_bytes = 8 << 20;
  return most;
}

std::vector<Decision> of_parts(const Bench& bench) {
  std::vector<Decision> found;
  for (const Decision& line : bench.tuner.decisions()) {
    if (line.setting == Setting::kPartBytes) found.push_back(line);
  }
  return found;
}

TEST(Tuner, CutsLargeObjectsIntoMorePartsWhereRequestsAreToSpare) {
  Bench bench = bench_of(large_objects(), {.threads = 2, .in_flight = 128},
                         limits_with_parts());
  const double before = bench.pipeline.speed();

  bench.run(40);

  // With 8 MiB, 32 parts are under way; with 1 MiB, all of 256.
  EXPECT_GE(bench.pipeline.speed(), 5 * before) << all(bench);
  const std::vector<Decision> decisions = of_parts(bench);
  ASSERT_GE(decisions.size(), 2u) << all(bench);
  EXPECT_EQ(decisions[0].before, 8 << 20);
  EXPECT_EQ(decisions[0].after, 2 << 20);
  EXPECT_FALSE(decisions[0].expected_gain);  // One length tells nothing.
  ASSERT_TRUE(decisions[0].found_gain);
  EXPECT_GT(*decisions[0].found_gain, 1);
  // Now it has a model: 50 ms, and a quarter of a second for each MiB, as far
  // as a dozen objects tell.
  EXPECT_EQ(decisions[1].after, 1 << 20);
  EXPECT_NE(decisions[1].reason.find(" ms for each MiB"), std::string::npos)
      << decisions[1].reason;
  ASSERT_TRUE(decisions[1].expected_gain);
  ASSERT_TRUE(decisions[1].found_gain);
  EXPECT_NEAR(*decisions[1].found_gain, *decisions[1].expected_gain, 0.4);
}

TEST(Tuner, LeavesPartsAsTheyAreWhereTrainingHardlyWaits) {
  SyntheticWorld world = large_objects();
  world.training_seconds =
      0.92 /
      bench_of(world, {.threads = 2, .in_flight = 128}, limits_with_parts())
          .pipeline.speed();
  Bench bench =
      bench_of(world, {.threads = 2, .in_flight = 128}, limits_with_parts());

  bench.run(60);

  EXPECT_TRUE(of_parts(bench).empty()) << all(bench);
}

TEST(Tuner, MakesPartsLongerWhereAllRequestsWaitForTheirFirstByte) {
  SyntheticWorld far = large_objects();
  far.latency_seconds = 0.2;
  far.connection_bytes_per_second = 1e9;
  far.bytes_ahead = 1e12;
  Observation most = limits_with_parts();
  most.most_in_flight = 4;
  Bench bench = bench_of(far, {.threads = 2, .in_flight = 4}, most);
  const double before = bench.pipeline.speed();

  bench.run(60);

  EXPECT_GE(bench.pipeline.speed(), 3 * before) << all(bench);
  ASSERT_FALSE(of_parts(bench).empty());
  EXPECT_GT(of_parts(bench).back().after, 8 << 20);
}

TEST(Tuner, LeavesPartsAsTheyAreWhereItIsNotToChangeThem) {
  Bench bench = bench_of(large_objects(), {.threads = 2, .in_flight = 128},
                         limits_with_parts());
  Observation now = bench.pipeline.run(1);
  for (int i = 0; i < 60; ++i) {
    now = bench.pipeline.run(1);
    now.part_bytes = 0;
    EXPECT_EQ(bench.tuner.observe(now).settings.part_bytes, 0u);
  }

  EXPECT_TRUE(of_parts(bench).empty());
}

// A change that brought nothing rests for longer and longer, up to 320 s. A new
// epoch is a new chance, once, unless epochs are short.
std::size_t decisions_within(double epoch_seconds) {
  Bench bench = bench_of({.latency_seconds = 0.02,
                          .bytes_per_read = 100e3,
                          .store_bytes_per_second = 20e6,
                          .task_seconds = 1e-4},
                         {.threads = 2, .in_flight = 8});
  for (double t = 0; t < 1000; t += epoch_seconds) {
    bench.pipeline.begin_epoch();
    bench.run(epoch_seconds);
  }
  return bench.tuner.decisions().size();
}

TEST(Tuner, TriesAgainOnceALongEpochHasEnded) {
  const std::size_t without = decisions_within(1000);
  const std::size_t with_short = decisions_within(10);
  const std::size_t with_long = decisions_within(50);

  EXPECT_EQ(with_short, without);
  EXPECT_GE(with_long, without + 8);
}

TEST(Tuner, SaysThatAnEpochHasEnded) {
  Bench bench = bench_of({.latency_seconds = 0.02,
                          .bytes_per_read = 100e3,
                          .store_bytes_per_second = 20e6,
                          .task_seconds = 1e-4},
                         {.threads = 2, .in_flight = 8});
  bench.run(100);
  bench.pipeline.begin_epoch();
  bench.run(10);

  EXPECT_NE(all(bench).find("; an epoch has ended"), std::string::npos)
      << all(bench);
}

RC_GTEST_PROP(Tuner, FindsMostOfTheBestOfAnyPipelineWithinItsLimits, ()) {
  const auto scaled = [](int low, int high, double unit) {
    return static_cast<double>(*rc::gen::inRange(low, high)) * unit;
  };
  SyntheticWorld world{.latency_seconds = scaled(1, 200, 1e-3),
                       .reads_per_sample = scaled(1, 20, 0.1),
                       .bytes_per_read = scaled(1, 1000, 1e3),
                       .store_bytes_per_second = scaled(1, 1000, 10e6),
                       .task_seconds = scaled(1, 300, 1e-4),
                       .cores = 0,
                       .training_seconds = scaled(0, 100, 1e-4),
                       .noise = 0.02};
  const auto cores = *rc::gen::inRange<std::size_t>(1, 32);
  world.cores = static_cast<double>(cores);
  Bench bench =
      bench_of(world,
               {.threads = *rc::gen::inRange<std::size_t>(1, cores + 1),
                .in_flight = *rc::gen::inRange<std::size_t>(1, 256)},
               limits(4 * cores, 512, world.cores),
               *rc::gen::arbitrary<std::uint64_t>());

  bench.run(30);

  RC_LOG(all(bench));
  RC_ASSERT(bench.pipeline.speed() >= 0.85 * bench.pipeline.best());
}

// Far away, and training only reads: more requests would be quicker.
SyntheticWorld far_store() {
  return {.latency_seconds = 0.05,
          .bytes_per_read = 20e3,
          .task_seconds = 2e-5,
          .noise = 0.3};
}

TEST(Tuner, AsksAStoreThatFailsOrIsLateForNoMore) {
  for (const bool is_late : {false, true}) {
    SyntheticWorld world = far_store();
    (is_late ? world.late_share : world.failed_share) = is_late ? 0.02 : 0.01;
    Bench bench = bench_of(world, {.threads = 2, .in_flight = 64});

    bench.run(300, 0.5);

    EXPECT_EQ(bench.pipeline.observed().in_flight, 64u) << all(bench);
    EXPECT_EQ(bench.pipeline.observed().lookahead, 128u) << all(bench);
  }
}

TEST(Tuner, GivesAStoreThatFailsTheThreadsItNeeds) {
  Bench bench = bench_of({.latency_seconds = 0.005,
                          .bytes_per_read = 20e3,
                          .task_seconds = 0.01,
                          .failed_share = 0.05},
                         {.threads = 1, .in_flight = 64});

  bench.run(60, 0.5);

  EXPECT_GT(bench.pipeline.observed().threads, 1u) << all(bench);
}

TEST(Tuner, AsksForMoreOnceTheStoreIsWellAndAsWithAFewFailures) {
  SyntheticWorld world = far_store();
  world.noise = 0.03;
  world.failed_share = 0.05;
  Bench bench = bench_of(world, {.threads = 2, .in_flight = 16});
  bench.run(30, 0.5);
  ASSERT_EQ(bench.pipeline.observed().in_flight, 16u) << all(bench);
  world.failed_share = 0.001;
  world.late_share = 0.005;
  bench.pipeline.change(world);

  bench.run(60, 0.5);

  EXPECT_GT(bench.pipeline.observed().in_flight, 256u) << all(bench);
}

TEST(Tuner, TakesBackWhatItTriesAsTheStoreBeginsToFail) {
  SyntheticWorld world = far_store();
  world.noise = 0;
  Bench bench = bench_of(world, {.threads = 2, .in_flight = 16});
  while (bench.lines.empty()) bench.run(0.5, 0.5);
  ASSERT_GT(bench.pipeline.observed().in_flight, 16u);
  world.failed_share = 0.1;
  bench.pipeline.change(world);

  bench.run(5, 0.5);

  EXPECT_EQ(bench.pipeline.observed().in_flight, 16u) << all(bench);
  EXPECT_NE(all(bench).find("taken back, 10.0 % of the reads failed"),
            std::string::npos)
      << all(bench);
}

TEST(Tuner, TakesBackWhatItTriesAsTheStoreFallsSilent) {
  SyntheticWorld world = far_store();
  world.noise = 0;
  Bench bench = bench_of(world, {.threads = 2, .in_flight = 16});
  while (bench.lines.empty()) bench.run(0.5, 0.5);
  bench.run(1, 0.5);  // It has taken hold.
  world.latency_seconds = 1e6;
  bench.pipeline.change(world);

  bench.run(3, 0.5);

  EXPECT_EQ(bench.pipeline.observed().in_flight, 16u) << all(bench);
  EXPECT_NE(all(bench).find("the store was silent"), std::string::npos)
      << all(bench);
}

RC_GTEST_PROP(Tuner, OfAnyObservationsKeepsWithinTheLimits, ()) {
  Tuner tuner;
  Observation now = limits();
  now.part_bytes = *rc::gen::element<std::uint64_t>(0, 1 << 20, 8 << 20);
  for (int i = 0; i < 50; ++i) {
    const auto any = [](auto most) {
      return *rc::gen::inRange<decltype(most)>(0, most);
    };
    now.at_seconds += static_cast<double>(any(30)) / 10;
    now.samples += any(1000);
    now.tasks += any(1000);
    now.reads += any(1000);
    now.read_bytes += any(1 << 30);
    now.failed_reads += any(10) == 0 ? any(1000) : 0;
    now.late_reads += any(10) == 0 ? any(1000) : 0;
    now.read_seconds += any(1000) / 7.0;
    now.busy_seconds += any(1000) / 7.0;
    now.cpu_seconds += any(1000) / 7.0;
    now.wait_seconds += any(10) / 7.0;
    now.memory_wait_seconds += any(10) / 7.0;
    now.training_seconds += any(10) / 7.0;
    now.most_threads = 1 + static_cast<std::size_t>(any(16));
    now.most_in_flight = 1 + static_cast<std::size_t>(any(512));
    now.epochs += any(10) == 0 ? 1 : 0;
    const Tuner::Step step = tuner.observe(now);
    RC_ASSERT(step.settings.threads >= 1);
    RC_ASSERT(step.settings.in_flight >= 1);
    RC_ASSERT(step.settings.threads <= now.most_threads);
    RC_ASSERT(step.settings.in_flight <= now.most_in_flight);
    RC_ASSERT((step.settings.part_bytes == 0) == (now.part_bytes == 0));
    if (now.part_bytes != 0) {
      RC_ASSERT(step.settings.part_bytes >= kLeastPartBytes);
      RC_ASSERT(step.settings.part_bytes <= kMostPartBytes);
    }
    now.part_bytes = step.settings.part_bytes;
    now.threads = step.settings.threads;
    now.in_flight = step.settings.in_flight;
    now.lookahead =
        std::max<std::uint64_t>(step.settings.lookahead, 2 * now.in_flight);
    (void)tuner.explanation();
  }
}

}  // namespace
}  // namespace leat
