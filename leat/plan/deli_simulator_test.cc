#include "leat/plan/deli_simulator.h"

#include <gtest/gtest.h>

#include <numeric>

namespace leat {
namespace {

/// One epoch of samples 0, 1, 2, …
std::vector<std::vector<SampleId>> in_order(std::uint64_t samples) {
  std::vector<SampleId> order;
  order.reserve(samples);
  for (std::uint64_t i = 0; i < samples; ++i) order.push_back(SampleId{i});
  return {order};
}

DeliEpoch run_deli(const DeliOptions& options, std::uint64_t samples) {
  auto epochs = simulate_deli(options, in_order(samples));
  EXPECT_TRUE(epochs.has_value());
  return epochs->front();
}

// A GET of 1 s, a fetch of 4 + 0 s: the first four of each refill are missed,
// then what it brought is found.
TEST(DeliSimulatorTest, MissesUntilTheFetchHasCome) {
  const DeliEpoch epoch = run_deli({.fetch_size = 10,
                                    .capacity_items = 10,
                                    .batch = 10,
                                    .get_seconds = 1,
                                    .fetch_seconds = 4},
                                   30);

  EXPECT_EQ(epoch.misses, 3u * 4u);
  EXPECT_EQ(epoch.fetched, 30u);
  EXPECT_DOUBLE_EQ(epoch.loading_seconds, 12.0);
}

// A threshold of a batch asks one batch ahead: computing hides the fetch.
TEST(DeliSimulatorTest, AThresholdFetchesWhileTheQueueIsUsedUp) {
  const DeliEpoch epoch = run_deli({.fetch_size = 10,
                                    .queue_threshold = 10,
                                    .capacity_items = 20,
                                    .batch = 10,
                                    .compute_seconds = 10,
                                    .get_seconds = 1,
                                    .fetch_seconds = 4},
                                   100);

  EXPECT_EQ(epoch.misses, 4u);  // By the very first fetch.
}

// T + F > C: new samples push out samples that are not read yet.
TEST(DeliSimulatorTest, AFetchIntoAFullFifoDropsWhatIsNotReadYet) {
  const DeliOptions fits{.fetch_size = 10,
                         .queue_threshold = 10,
                         .capacity_items = 20,
                         .batch = 10,
                         .compute_seconds = 10,
                         .get_seconds = 1,
                         .fetch_seconds = 4};
  DeliOptions too_small = fits;
  too_small.capacity_items = 5;

  EXPECT_GT(run_deli(too_small, 200).misses, 3 * run_deli(fits, 200).misses);
}

// A batch's indices are drawn at once, so a small fetch size asks for several
// fetches at the same moment: the second comes 4 s after the first, at 8 s,
// when the training has missed 0 to 3, found 4 and missed 5 to 8.
TEST(DeliSimulatorTest, AFetchWaitsForTheOneBeforeIt) {
  const DeliEpoch epoch = run_deli({.fetch_size = 5,
                                    .capacity_items = 10,
                                    .batch = 10,
                                    .get_seconds = 1,
                                    .fetch_seconds = 4},
                                   10);

  EXPECT_EQ(epoch.misses, 8u);  // Fetches beside each other: 4.
  EXPECT_DOUBLE_EQ(epoch.loading_seconds, 8.0);
}

// Time that nobody asks for anything is not kept for later: a fetch begins when
// it is asked for, or when the one before it has come, if that is later.
TEST(DeliSimulatorTest, AFetchBeginsNoEarlierThanItIsAskedFor) {
  const DeliEpoch epoch = run_deli({.fetch_size = 5,
                                    .capacity_items = 10,
                                    .batch = 5,
                                    .compute_seconds = 100,
                                    .get_seconds = 1,
                                    .fetch_seconds = 4},
                                   10);

  EXPECT_EQ(epoch.misses, 8u);  // 4 of each fetch.
}

TEST(DeliSimulatorTest, AMissIsNotKeptAndAFetchSkipsWhatIs) {
  auto two_epochs = in_order(10);
  two_epochs.push_back(two_epochs.front());
  const DeliOptions options{.fetch_size = 10,
                            .capacity_items = 100,
                            .batch = 10,
                            .get_seconds = 1,
                            .fetch_seconds = 100};

  // Nothing has come when the second epoch asks: it asks for all again.
  const auto slow = simulate_deli(options, two_epochs);
  EXPECT_EQ((*slow)[1].misses, 10u);
  EXPECT_EQ((*slow)[1].fetched, 10u);

  DeliOptions quick = options;
  quick.fetch_seconds = 0;
  const auto held = simulate_deli(quick, two_epochs);
  EXPECT_EQ((*held)[1].misses, 0u);
  EXPECT_EQ((*held)[1].fetched, 0u);
}

TEST(DeliSimulatorTest, RefusesWhatCannotBe) {
  EXPECT_FALSE(simulate_deli({.fetch_size = 0}, in_order(1)).has_value());
  EXPECT_FALSE(simulate_deli({.capacity_items = 0}, in_order(1)).has_value());
  EXPECT_FALSE(simulate_deli({.batch = 0}, in_order(1)).has_value());
  EXPECT_FALSE(simulate_deli({.get_seconds = -1}, in_order(1)).has_value());
}

TEST(DeliSimulatorTest, StopsWhenItIsTold) {
  std::stop_source stop;
  stop.request_stop();

  const auto stopped = simulate_deli({}, in_order(10), stop.get_token());

  ASSERT_FALSE(stopped.has_value());
  EXPECT_EQ(stopped.error().code(), ErrorCode::kCancelled);
}

}  // namespace
}  // namespace leat
