#include "leat/engine/recent_trace.h"

#include <gtest/gtest.h>

#include <chrono>
#include <vector>

namespace leat {
namespace {

using std::chrono::milliseconds;

/// A batch of samples that finish one after another, 1 ms apart.
class Batches {
 public:
  void give(RecentTrace& trace, std::uint64_t step, std::size_t size,
            std::size_t last) {
    std::vector<SampleTimes> times(size);
    std::vector<TracedSample> samples;
    for (std::size_t row = 0; row < size; ++row) {
      SampleTimes& at = times[row];
      at.reserved = begin_ + milliseconds(10);
      at.fetched = begin_ + milliseconds(30);
      at.decoded = begin_ + milliseconds(40);
      at.finished = begin_ + milliseconds(row == last ? 60 : 50);
      at.delays = {
          {.time = {begin_ + milliseconds(11), begin_ + milliseconds(12)},
           .cause = Stall::kThrottled},
          {.time = {begin_ + milliseconds(13), begin_ + milliseconds(15)},
           .cause = Stall::kCacheIo},
          {.time = {begin_ + milliseconds(28), begin_ + milliseconds(29)},
           .cause = Stall::kCacheIo}};
      samples.push_back({.id = SampleId{row}, .times = &at});
    }
    trace.add({.epoch = 2,
               .step = step,
               .samples = samples,
               .ready = begin_ + milliseconds(61),
               .wait = {begin_ + milliseconds(55), begin_ + milliseconds(62)}});
  }

 private:
  const TimePoint begin_ = SteadyClock().now();
};

TEST(RecentTrace, KeepsNothingUntilSomebodyLooksAndOnlyForSomeSeconds) {
  RecentTrace trace;
  const TimePoint now = SteadyClock().now();
  EXPECT_FALSE(trace.is_watched(now));

  EXPECT_TRUE(trace.see().steps.empty());

  EXPECT_TRUE(trace.is_watched(now));
  EXPECT_FALSE(trace.is_watched(now + std::chrono::minutes(1)));
}

TEST(RecentTrace, TellsTimesFromTheFirstOnInMicroseconds) {
  RecentTrace trace;
  (void)trace.see();
  Batches().give(trace, 7, 2, 1);

  const JobTrace seen = trace.see();

  ASSERT_EQ(seen.steps.size(), 1u);
  const TraceStep& step = seen.steps[0];
  EXPECT_EQ(step.epoch, 2u);
  EXPECT_EQ(step.step, 7u);
  EXPECT_EQ(step.size, 2u);
  EXPECT_EQ(step.asked, 45'000u);
  EXPECT_EQ(step.ready, 51'000u);
  EXPECT_EQ(step.given, 52'000u);
  ASSERT_EQ(step.samples.size(), 2u);
  const TraceSample last{.id = 1,
                         .reserved = 0,
                         .fetched = 20'000,
                         .decoded = 30'000,
                         .finished = 50'000,
                         .cache_begin = 3'000,
                         .cache_end = 5'000};
  EXPECT_EQ(step.samples[0], last) << "the one that all waited for comes first";
  const std::chrono::duration<double> now =
      std::chrono::system_clock::now().time_since_epoch();
  EXPECT_GT(now.count() + 1, seen.begin_seconds);
  EXPECT_LT(now.count() - 3600, seen.begin_seconds);
}

TEST(RecentTrace, IsBoundedHoweverLargeAndManyBatchesAre) {
  RecentTrace trace;
  (void)trace.see();
  Batches batches;
  for (std::uint64_t step = 0; step < 100; ++step) {
    batches.give(trace, step, 1000, 999);
  }

  const JobTrace seen = trace.see();

  ASSERT_EQ(seen.steps.size(), JobTrace::kMostSteps);
  EXPECT_EQ(seen.steps.back().step, 99u);
  for (const TraceStep& step : seen.steps) {
    EXPECT_EQ(step.size, 1000u);
    ASSERT_LE(step.samples.size(), TraceStep::kMostSamples);
    EXPECT_EQ(step.samples[0].id, 999u);
    EXPECT_GT(step.samples.size(), TraceStep::kMostSamples / 2);
    for (std::size_t i = 1; i < step.samples.size(); ++i) {
      EXPECT_NE(step.samples[i].id, 999u) << "once";
    }
  }
}

}  // namespace
}  // namespace leat
