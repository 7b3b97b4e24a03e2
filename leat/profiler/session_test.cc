#include "leat/profiler/session.h"

#include <gtest/gtest.h>

#include <optional>

namespace leat {
namespace {

TEST(SessionTest, EachWorkerGivesEquallyManyOfTheStepsThatAreMeasured) {
  EXPECT_EQ(whole_turns(50, 4), 48u);
  EXPECT_EQ(whole_turns(48, 4), 48u);
  EXPECT_EQ(whole_turns(5, 5), 5u);
}

TEST(SessionTest, AllStepsAreMeasuredWhereNoWorkersTakeTurns) {
  EXPECT_EQ(whole_turns(50, std::nullopt), 50u) << "threads";
  EXPECT_EQ(whole_turns(50, 0), 50u) << "the training's own process";
  EXPECT_EQ(whole_turns(50, 1), 50u);
  EXPECT_EQ(whole_turns(5, 8), 5u) << "there would be none";
}

}  // namespace
}  // namespace leat
