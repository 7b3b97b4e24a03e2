#include "leat/cache/plan_clock.h"

#include <gtest/gtest.h>

namespace leat {
namespace {

TEST(PlanClockTest, AFirstEpochIsOverAnEpochAfterTheFirstUse) {
  PlanClock clock(100);
  EXPECT_EQ(clock.since_first_epoch(1000), std::nullopt);

  clock.see(30);
  clock.see(90);

  EXPECT_EQ(clock.since_first_epoch(129), std::nullopt);
  EXPECT_EQ(clock.since_first_epoch(130), 0u);
  EXPECT_EQ(clock.since_first_epoch(150), 20u);
}

TEST(PlanClockTest, TheLatestReadIsTheFurthestOneThatWasAskedFor) {
  PlanClock clock(100);
  clock.ask(250);
  clock.ask(240);  // Out of order, as reads are.
  EXPECT_EQ(clock.asked(), 250u);

  clock.ask(149);  // More than an epoch back: the plan began again.

  EXPECT_EQ(clock.asked(), 149u);
}

TEST(PlanClockTest, AnotherPlanHasAFirstEpochOfItsOwn) {
  PlanClock clock(100);
  clock.ask(30);

  clock.begin_plan(500);

  EXPECT_EQ(clock.asked(), 500u);
  EXPECT_EQ(clock.since_first_epoch(600), std::nullopt);
  clock.ask(510);
  EXPECT_EQ(clock.since_first_epoch(612), 2u);
}

}  // namespace
}  // namespace leat
