#include "leat/plan/fetch_ahead.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdint>
#include <deque>
#include <vector>

namespace leat {
namespace {

/// The draws that ask, among the first `draws`.
std::vector<std::uint64_t> asking_draws(const FetchAheadOptions& options,
                                        std::uint64_t draws) {
  FetchAhead rule = *FetchAhead::make(options);
  std::vector<std::uint64_t> asking;
  for (std::uint64_t i = 0; i < draws; ++i) {
    if (rule.draw() != 0) asking.push_back(i);
  }
  return asking;
}

using Draws = std::vector<std::uint64_t>;

TEST(FetchAheadTest, AsksForFWhenTAreLeft) {
  EXPECT_EQ(asking_draws({.fetch_size = 4, .queue_threshold = 0}, 12),
            (Draws{0, 4, 8}));
  EXPECT_EQ(asking_draws({.fetch_size = 4, .queue_threshold = 1}, 12),
            (Draws{0, 3, 7, 11}));
  EXPECT_EQ(asking_draws({.fetch_size = 4, .queue_threshold = 3}, 12),
            (Draws{0, 1, 5, 9}));
  // Once a draw, until there are more than T.
  EXPECT_EQ(asking_draws({.fetch_size = 4, .queue_threshold = 8}, 12),
            (Draws{0, 1, 2, 4, 8}));
}

// The published sampler, which has a queue of indices.
RC_GTEST_PROP(FetchAheadTest, IsTheSamplerWithItsQueue, ()) {
  const auto size = *rc::gen::inRange<std::uint64_t>(1, 50);
  const auto threshold = *rc::gen::inRange<std::uint64_t>(0, 80);
  const auto draws = *rc::gen::inRange<std::uint64_t>(0, 300);
  FetchAhead rule =
      *FetchAhead::make({.fetch_size = size, .queue_threshold = threshold});
  std::deque<std::uint64_t> queue;
  std::uint64_t next = 0;
  for (std::uint64_t i = 0; i < draws; ++i) {
    const std::uint64_t before = next;
    if (queue.size() <= threshold) {
      for (std::uint64_t k = 0; k < size; ++k) queue.push_back(next++);
    }

    RC_ASSERT(rule.draw() == next - before);

    RC_ASSERT(queue.front() == i);
    queue.pop_front();
    RC_ASSERT(rule.asked() == next);
    RC_ASSERT(rule.drawn() == i + 1);
  }
}

TEST(FetchAheadTest, RefusesWhatAsksForNothing) {
  EXPECT_FALSE(FetchAhead::make({.fetch_size = 0}));
  EXPECT_FALSE(FetchAhead::make({.fetch_size = FetchAhead::kMost + 1}));
  EXPECT_FALSE(FetchAhead::make({.queue_threshold = FetchAhead::kMost + 1}));
}

}  // namespace
}  // namespace leat
