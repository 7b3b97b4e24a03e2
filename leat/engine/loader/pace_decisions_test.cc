#include "leat/engine/loader/pace_decisions.h"

#include <gtest/gtest.h>

#include <chrono>

namespace leat {
namespace {

using std::chrono::seconds;

constexpr TimePoint kOpened{seconds(100)};

RequestPace::Episode episode() {
  return {.began = kOpened + seconds(5),
          .sent = 612,
          .bound = 300,
          .served = 12,
          .throttled = 8,
          .least = 240,
          .last = 280};
}

TEST(PaceDecisionsTest, ABeginningIsALine) {
  const RequestPace::Episode one = episode();

  const auto decisions = pace_decisions({&one, 1}, kOpened);

  ASSERT_EQ(decisions.size(), 1u);
  EXPECT_EQ(to_string(decisions[0]),
            "5.0 s  requests_per_second 612 -> 300: the store throttled 8 of "
            "20 requests (503 SlowDown, 429)");
}

TEST(PaceDecisionsTest, AnEndIsAnotherAndSaysWhy) {
  using End = RequestPace::Episode::End;
  RequestPace::Episode one = episode();
  one.ended = kOpened + seconds(95);
  for (const auto& [end, why] :
       {std::pair(End::kCalm, "the store has throttled nothing for a minute"),
        std::pair(End::kNoLimit,
                  "the store throttles no more, however many "
                  "are sent"),
        std::pair(End::kNoHelp,
                  "the store throttles fewer requests as often, so there is "
                  "another reason than their number")}) {
    one.end = end;

    const auto decisions = pace_decisions({&one, 1}, kOpened);

    ASSERT_EQ(decisions.size(), 2u);
    EXPECT_EQ(to_string(decisions[1]),
              "95.0 s  requests_per_second 280 -> no bound: " +
                  std::string(why) + "; 240 was the least in these 90 s");
  }
}

}  // namespace
}  // namespace leat
