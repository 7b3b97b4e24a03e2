#include "leat/profile/timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace leat {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(TimelineTest, FewStepsAreKeptAsTheyAre) {
  const std::vector<double> steps = {0.3, 0.1, 0.2};
  const std::vector<double> waits = {0.2, 0, 0.1};

  const Timeline timeline = timeline_of(steps, waits, 10);

  EXPECT_EQ(timeline.steps, 3u);
  EXPECT_EQ(timeline.steps_a_bin, 1u);
  ASSERT_EQ(timeline.bins.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(timeline.bins[i].mean_seconds, steps[i]);
    EXPECT_EQ(timeline.bins[i].most_wait, waits[i]);
  }
}

TEST(TimelineTest, AHundredThousandStepsFitAndNoPeakIsLost) {
  std::vector<double> steps(100'000, 0.01);
  std::vector<double> waits(100'000, 0.001);
  steps[77'777] = 5;
  waits[77'777] = 4;

  const Timeline timeline = timeline_of(steps, waits, 300);

  EXPECT_EQ(timeline.steps_a_bin, 334u);
  ASSERT_EQ(timeline.bins.size(), 300u);
  const TimelineBin& bin = timeline.bins[77'777 / 334];
  EXPECT_EQ(bin.most_seconds, 5);
  EXPECT_EQ(bin.most_wait, 4);
  EXPECT_NEAR(bin.mean_seconds, (333 * 0.01 + 5) / 334, 1e-9);
  double sum = 0;
  for (std::size_t i = 0; i + 1 < 300; ++i) {
    sum += 334 * timeline.bins[i].mean_seconds;
  }
  sum += (100'000 - 299 * 334) * timeline.bins.back().mean_seconds;
  EXPECT_NEAR(sum, std::accumulate(steps.begin(), steps.end(), 0.0), 1e-6);
}

TEST(TimelineTest, OfNothingThereIsNothing) {
  EXPECT_THAT(timeline_of({}, {}, 10).bins, IsEmpty());
  EXPECT_EQ(spread_of({}).longest, 0);
  for (const std::size_t count : histogram_of({}).counts) EXPECT_EQ(count, 0u);
}

TEST(WaitSpreadTest, SharesAreOfTheSortedWaits) {
  std::vector<double> waits;
  for (int i = 100; i > 0; --i) waits.push_back(i);

  const WaitSpread spread = spread_of(waits);

  EXPECT_EQ(spread.half, 50);
  EXPECT_EQ(spread.most_of_ten, 90);
  EXPECT_EQ(spread.most_of_hundred, 99);
  EXPECT_EQ(spread.longest, 100);
}

TEST(WaitHistogramTest, EachWaitIsInTheBinThatItsLowerBoundBegins) {
  const std::vector<double> waits = {0, 63e-6, 64e-6, 127e-6, 128e-6, 1e6};

  const WaitHistogram histogram = histogram_of(waits);

  EXPECT_EQ(histogram.lower.size(), histogram.counts.size());
  EXPECT_EQ(histogram.counts[0], 2u);
  EXPECT_EQ(histogram.counts[1], 2u);
  EXPECT_EQ(histogram.counts[2], 1u);
  EXPECT_EQ(histogram.counts.back(), 1u);
}

}  // namespace
}  // namespace leat
