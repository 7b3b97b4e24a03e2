#include "leat/index/build_turn.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace leat {
namespace {

constexpr Nanoseconds kLong = std::chrono::hours(1);

class BuildTurnTest : public ::testing::Test {
 protected:
  ~BuildTurnTest() override { std::filesystem::remove(path_); }

  /// Looks that see these, one after another, and then the last one for ever.
  std::function<Result<Sight>()> sees(std::vector<Sight> sights) {
    return [this, sights = std::move(sights)]() -> Result<Sight> {
      return sights[std::min(looks_++, sights.size() - 1)];
    };
  }

  Result<std::optional<CatalogueLock>> wait(
      std::uint32_t local_rank, Nanoseconds head_start,
      const std::function<Result<Sight>()>& look) {
    const TurnTimes times{.head_start = head_start,
                          .pace = std::chrono::milliseconds(10)};
    return wait_for_turn(path_,
                         {.rank = {local_rank, 4}, .local = {local_rank, 4}},
                         times, look, stop_.get_token());
  }

  std::string path_ =
      std::filesystem::path(::testing::TempDir()) /
      ("turn-" + std::to_string(getpid()) + "-" +
       ::testing::UnitTest::GetInstance()->current_test_info()->name());
  std::size_t looks_ = 0;
  std::stop_source stop_;
};

TEST_F(BuildTurnTest, WhatIsThereIsNotBuilt) {
  const auto turn = wait(0, kLong, sees({Sight::kThere}));

  ASSERT_TRUE(turn) << turn.error().message();
  EXPECT_FALSE(*turn);
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(BuildTurnTest, LocalRank0BuildsAtOnceAndHoldsTheLock) {
  const auto turn = wait(0, kLong, sees({Sight::kNothing}));

  ASSERT_TRUE(turn) << turn.error().message();
  ASSERT_TRUE(*turn);
  EXPECT_FALSE(*CatalogueLock::try_lock(path_));
}

TEST_F(BuildTurnTest, WhatComesBetweenTheLookAndTheLockIsNotBuiltAgain) {
  const auto turn = wait(0, kLong, sees({Sight::kNothing, Sight::kThere}));

  ASSERT_TRUE(turn) << turn.error().message();
  EXPECT_FALSE(*turn);
  EXPECT_EQ(looks_, 2u);
  EXPECT_TRUE(*CatalogueLock::try_lock(path_));
}

TEST_F(BuildTurnTest, AnotherRankBuildsAfterTheHeadStartAlone) {
  EXPECT_TRUE(*wait(1, Nanoseconds(0), sees({Sight::kNothing})));

  looks_ = 0;
  const std::vector<Sight> sights = {Sight::kNothing, Sight::kNothing,
                                     Sight::kNothing, Sight::kThere};
  EXPECT_FALSE(*wait(1, kLong, sees(sights)));
  EXPECT_EQ(looks_, 4u);
}

TEST_F(BuildTurnTest, WhoWaitedForABuilderThatLeftIsNext) {
  std::optional<CatalogueLock> builder = *CatalogueLock::try_lock(path_);
  const auto look = [&]() -> Result<Sight> {
    if (++looks_ == 3) builder.reset();
    return Sight::kNothing;
  };

  const auto turn = wait(1, kLong, look);

  ASSERT_TRUE(turn) << turn.error().message();
  EXPECT_TRUE(*turn);
  EXPECT_GE(looks_, 3u);
}

TEST_F(BuildTurnTest, EndsWhenToldOrWhenALookFails) {
  stop_.request_stop();
  EXPECT_EQ(wait(1, kLong, sees({Sight::kNothing})).error().code(),
            ErrorCode::kCancelled);
  EXPECT_EQ(wait(1, kLong,
                 []() -> Result<Sight> {
                   return Error(ErrorCode::kUnavailable, "no bucket");
                 })
                .error()
                .code(),
            ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace leat
