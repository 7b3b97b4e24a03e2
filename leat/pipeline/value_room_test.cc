#include "leat/pipeline/value_room.h"

#include <gtest/gtest.h>

namespace leat {
namespace {

using Found = ValueRoom::Found;

TensorSpec picture_spec(std::int64_t height, std::int64_t width) {
  return {DType::kUint8, {1, height, width}};
}

TEST(ValueRoomTest, TakesFromTheBudgetWhatWasGuessedTooLow) {
  MemoryBudget budget(1000);
  ValueRoom room;
  room.begin(1, 2, 100);

  const auto find = [&](const TensorSpec& spec) {
    return room.find(0, spec, Joining::kShapes, {}, budget);
  };
  EXPECT_EQ(find(picture_spec(5, 10)), Found::kYes);
  EXPECT_EQ(budget.used_bytes(), 0u);
  // Values, and the array that joins them.
  EXPECT_EQ(find(picture_spec(10, 10)), Found::kYes);
  EXPECT_EQ(room.needed_bytes(), 300u);
  EXPECT_EQ(budget.used_bytes(), 200u);
  room.release();
  EXPECT_EQ(budget.used_bytes(), 0u);
}

TEST(ValueRoomTest, SaysWhereThereIsNoneNowAndWhereThereNeverIs) {
  MemoryBudget budget(1000);
  const auto held = budget.try_reserve(900);
  ValueRoom room;
  room.begin(1, 2, 0);

  EXPECT_EQ(room.find(0, picture_spec(10, 10), Joining::kStack, {}, budget),
            Found::kNotNow);
  EXPECT_EQ(room.find(0, picture_spec(20, 21), Joining::kStack, {}, budget),
            Found::kTooMuch);
  EXPECT_EQ(room.needed_bytes(), 1040u);
}

TEST(ValueRoomTest, CountsWhatPicturesAreFilledUpTo) {
  MemoryBudget budget(10'000);
  ValueRoom room;
  room.begin(2, 3, 0);
  const PadRule rule{.multiple = 8, .height_at = 1};

  EXPECT_EQ(room.find(1, picture_spec(9, 2), Joining::kPadded, rule, budget),
            Found::kYes);
  EXPECT_EQ(room.needed_bytes(), 18u + 3 * 16 * 8);
  EXPECT_EQ(room.find(1, picture_spec(2, 9), Joining::kPadded, rule, budget),
            Found::kYes);
  EXPECT_EQ(room.needed_bytes(), 36u + 3 * 16 * 16);
  EXPECT_EQ(budget.used_bytes(), room.needed_bytes());
}

}  // namespace
}  // namespace leat
