#include "leat/plan/run_finder.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <vector>

namespace leat {
namespace {

std::uint64_t by_search(const std::vector<std::uint64_t>& starts,
                        std::uint64_t number) {
  return static_cast<std::uint64_t>(std::ranges::upper_bound(starts, number) -
                                    starts.begin()) -
         1;
}

RC_GTEST_PROP(RunFinderProperty, FindsWhatASearchFinds, ()) {
  const auto lengths =
      *rc::gen::nonEmpty(rc::gen::container<std::vector<std::uint64_t>>(
          rc::gen::oneOf(rc::gen::inRange<std::uint64_t>(0, 3),
                         rc::gen::inRange<std::uint64_t>(0, 1000))));
  std::vector<std::uint64_t> starts = {0};
  for (const std::uint64_t length : lengths) {
    starts.push_back(starts.back() + length);
  }
  const RunFinder finder(starts);
  for (std::uint64_t number = 0; number < starts.back(); ++number) {
    RC_ASSERT(finder.find(number, starts) == by_search(starts, number));
  }
}

// Many short runs beside a long one lie in one entry of the index.
TEST(RunFinderTest, FindsRunsOfVeryUnequalLength) {
  std::vector<std::uint64_t> starts = {0};
  for (int i = 0; i < 1000; ++i) starts.push_back(starts.back() + 1);
  starts.push_back(starts.back() + 1'000'000'000'000);
  const RunFinder finder(starts);

  for (const std::uint64_t number : {0, 1, 500, 998, 999, 1000, 77'777}) {
    EXPECT_EQ(finder.find(number, starts), by_search(starts, number));
  }
  EXPECT_EQ(finder.find(starts.back() - 1, starts), 1000U);
}

TEST(RunFinderTest, TakesRunsWithoutNumbers) {
  const RunFinder nothing(std::vector<std::uint64_t>{0});
  const std::vector<std::uint64_t> starts = {0, 0, 0, 2, 2};
  const RunFinder finder(starts);

  EXPECT_EQ(finder.find(1, starts), 2U);
}

}  // namespace
}  // namespace leat
