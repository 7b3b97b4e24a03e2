#include "leat/pipeline/value_rows.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace leat {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Value array(DType dtype, std::vector<std::int64_t> shape, char fill) {
  ArrayValue value{{dtype, std::move(shape)}, {}};
  value.bytes = Buffer(value.spec.size_bytes());
  std::ranges::fill(value.bytes.span(), static_cast<std::byte>(fill));
  return value;
}

struct ValueRowsTest : ::testing::Test {
  Result<FieldArray> join(std::vector<Value> values, Joining joining,
                          const PadRule& pad = {}) {
    ValueRows rows(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      rows.put(i, std::move(values[i]));
    }
    return join(rows, joining, pad);
  }
  Result<FieldArray> join(ValueRows& rows, Joining joining,
                          const PadRule& pad = {}) {
    FieldArray into{.name = "x"};
    const auto key_of = [](std::size_t row) { return fmt::format("k{}", row); };
    LEAT_TRY_VOID(rows.join({joining, pad, "do this"}, key_of, slots, learned,
                            field_index, into));
    return into;
  }
  template <class... Values>
  static std::vector<Value> list(Values&&... values) {
    std::vector<Value> all;
    (all.push_back(std::forward<Values>(values)), ...);
    return all;
  }
  static std::string text(const FieldArray& field) {
    return std::string(as_text(field.values->bytes()));
  }

  static std::vector<std::int64_t> numbers(const SlotRef& slot) {
    const auto* first =
        reinterpret_cast<const std::int64_t*>(slot->bytes().data());
    return {first, first + slot->bytes().size() / sizeof(std::int64_t)};
  }

  SlotPool slots{0, std::make_shared<Metrics>()};
  LearnedShapes learned;
  std::size_t field_index = 3;
};

TEST_F(ValueRowsTest, StacksEqualShapes) {
  const auto field = join(list(array(DType::kUint8, {2, 2}, 'a'),
                               array(DType::kUint8, {2, 2}, 'b')),
                          Joining::kStack);

  ASSERT_TRUE(field) << field.error().message();
  EXPECT_EQ(field->kind, ArrayKind::kDense);
  EXPECT_THAT(field->shape, ElementsAre(2, 2, 2));
  EXPECT_EQ(text(*field), "aaaabbbb");
}

TEST_F(ValueRowsTest, ListsTexts) {
  const auto field =
      join(list(std::string("a"), std::string()), Joining::kStack);

  ASSERT_TRUE(field) << field.error().message();
  EXPECT_EQ(field->kind, ArrayKind::kStrings);
  EXPECT_THAT(field->strings, ElementsAre("a", ""));
}

TEST_F(ValueRowsTest, PutsUnequalLengthsSideBySide) {
  const auto field = join(
      list(array(DType::kInt16, {2, 1}, 'a'), array(DType::kInt64, {0}, 'b'),
           array(DType::kInt16, {1, 1}, 'c')),
      Joining::kRagged);

  ASSERT_TRUE(field) << field.error().message();
  EXPECT_EQ(field->kind, ArrayKind::kRagged);
  EXPECT_EQ(field->dtype, DType::kInt16);
  EXPECT_THAT(field->shape, ElementsAre(3, 1));
  EXPECT_EQ(text(*field), "aaaacc");
  const auto* offsets =
      reinterpret_cast<const std::int64_t*>(field->offsets->bytes().data());
  EXPECT_THAT(std::vector<std::int64_t>(offsets, offsets + 4),
              ElementsAre(0, 2, 2, 3));
}

TEST_F(ValueRowsTest, PutsShapesOfTheirOwnSideBySide) {
  const auto field = join(list(array(DType::kInt16, {1, 2, 3}, 'a'),
                               array(DType::kInt16, {1, 1, 1}, 'b')),
                          Joining::kShapes);

  ASSERT_TRUE(field) << field.error().message();
  EXPECT_EQ(field->kind, ArrayKind::kRagged);
  EXPECT_THAT(field->shape, ElementsAre(7));
  EXPECT_EQ(text(*field), "aaaaaaaaaaaabb");
  EXPECT_THAT(numbers(field->offsets), ElementsAre(0, 6, 7));
  EXPECT_THAT(numbers(field->shapes), ElementsAre(1, 2, 3, 1, 1, 1));
}

TEST_F(ValueRowsTest, StacksWhatHappensToBeEqualWhereEitherWillDo) {
  const auto equal = join(list(array(DType::kUint8, {2, 1}, 'a'),
                               array(DType::kUint8, {2, 1}, 'b')),
                          Joining::kEither);
  const auto other = join(list(array(DType::kUint8, {2, 1}, 'a'),
                               array(DType::kUint8, {1, 2}, 'b')),
                          Joining::kEither);

  ASSERT_TRUE(equal && other);
  EXPECT_EQ(equal->kind, ArrayKind::kDense);
  EXPECT_EQ(other->kind, ArrayKind::kRagged);
  EXPECT_THAT(numbers(other->shapes), ElementsAre(2, 1, 1, 2));
}

TEST_F(ValueRowsTest, FillsPicturesUpBelowAndOnTheRight) {
  const auto chw = join(list(array(DType::kUint8, {2, 1, 2}, 'a'),
                             array(DType::kUint8, {2, 2, 1}, 'b')),
                        Joining::kPadded, {.fill = '.'});
  const auto hwc =
      join(list(array(DType::kUint8, {1, 2, 2}, 'a')), Joining::kPadded,
           {.multiple = 3, .fill = '.', .height_at = 0});
  const auto given = join(list(array(DType::kUint8, {1, 1, 1}, 'a')),
                          Joining::kPadded, {.size = {2, 3}, .fill = '.'});

  ASSERT_TRUE(chw && hwc && given);
  EXPECT_THAT(chw->shape, ElementsAre(2, 2, 2, 2));
  EXPECT_EQ(text(*chw), "aa..aa..b.b.b.b.");
  EXPECT_THAT(hwc->shape, ElementsAre(1, 3, 3, 2));
  EXPECT_EQ(text(*hwc), "aaaa..............");
  EXPECT_THAT(given->shape, ElementsAre(1, 1, 2, 3));
  EXPECT_EQ(text(*given), "a.....");
}

TEST_F(ValueRowsTest, FillsUpWithNumbersOfTheArraysOwnType) {
  const auto filled = [&](DType dtype, double fill) {
    const auto field = join(list(array(dtype, {1, 1, 1}, 0)), Joining::kPadded,
                            {.size = {1, 2}, .fill = fill});
    ++field_index;
    EXPECT_TRUE(field);
    return field ? text(*field).substr(size_bytes_of(dtype)) : "";
  };
  const float single = -1.5f;
  EXPECT_EQ(filled(DType::kFloat32, -1.5),
            std::string(reinterpret_cast<const char*>(&single), 4));
  EXPECT_EQ(filled(DType::kBfloat16, -1.5), std::string("\xc0\xbf", 2));
  EXPECT_EQ(filled(DType::kFloat16, -1.5), std::string("\x00\xbe", 2));
  EXPECT_EQ(filled(DType::kInt16, 258), std::string("\x02\x01", 2));
}

TEST_F(ValueRowsTest, RefusesWhatHasNoRoomOrIsNoPicture) {
  const auto refused = [&](std::vector<Value> values, const PadRule& pad) {
    const auto field = join(std::move(values), Joining::kPadded, pad);
    EXPECT_FALSE(field);
    return field ? std::string() : field.error().message();
  };
  EXPECT_THAT(
      refused(list(array(DType::kUint8, {1, 4, 3}, 0)), {.size = {3, 3}}),
      HasSubstr("\"k0\" is 4 x 3 (height, width), and PadTo has room "
                "for 3 x 3"));
  EXPECT_THAT(refused(list(array(DType::kUint8, {1, 4, 3}, 0)), {.fill = 256}),
              HasSubstr("PadTo(fill=...): 256 is no uint8"));
  EXPECT_THAT(refused(list(array(DType::kUint8, {4}, 0)), {}),
              HasSubstr("no picture"));
  EXPECT_THAT(refused(list(array(DType::kUint8, {3, 4, 3}, 0),
                           array(DType::kUint8, {1, 4, 3}, 0)),
                      {}),
              HasSubstr("uint8 (1, 4, 3), but"));
}

TEST_F(ValueRowsTest, TellsTheSizesOfPictures) {
  ValueRows rows(2);
  rows.put(0, array(DType::kUint8, {3, 4, 5}, 0));
  rows.put(1, array(DType::kUint8, {3, 6, 2}, 0));
  const SlotRef sizes = slots.take(4 * sizeof(std::int64_t));

  ASSERT_TRUE(rows.write_sizes(
      1, [](std::size_t) { return "k"; }, sizes->bytes()));
  EXPECT_THAT(numbers(sizes), ElementsAre(4, 5, 6, 2));
}

TEST_F(ValueRowsTest, NamesBothRowsThatDoNotFit) {
  const auto refused = [&](std::vector<Value> values, Joining joining) {
    const auto field = join(std::move(values), joining);
    EXPECT_FALSE(field);
    if (field) return std::string();
    EXPECT_EQ(field.error().code(), ErrorCode::kInvalidArgument);
    return field.error().message();
  };
  EXPECT_EQ(
      refused(list(array(DType::kInt64, {2}, 0), array(DType::kInt64, {3}, 0)),
              Joining::kStack),
      "the value of \"k1\" is int64 (3), but that of \"k0\" is int64 (2); "
      "do this");
  EXPECT_THAT(refused(list(std::string("a"), array(DType::kInt64, {}, 0)),
                      Joining::kStack),
              HasSubstr("\"k1\" is int64, but that of \"k0\" is a text"));
  EXPECT_THAT(refused(list(array(DType::kInt64, {2, 3}, 0),
                           array(DType::kInt64, {2, 4}, 0)),
                      Joining::kRagged),
              HasSubstr("int64 (2, 4), but"));
  EXPECT_THAT(
      refused(list(array(DType::kInt64, {1}, 0), array(DType::kInt32, {1}, 0)),
              Joining::kRagged),
      HasSubstr("int32 (1), but"));
  EXPECT_THAT(refused(list(array(DType::kInt64, {}, 0)), Joining::kRagged),
              HasSubstr("no list"));
}

TEST_F(ValueRowsTest, KeepsTheTypeOfTheFirstBatch) {
  ASSERT_TRUE(join(list(array(DType::kInt64, {2}, 0)), Joining::kStack));

  EXPECT_TRUE(join(list(array(DType::kInt64, {5}, 0)), Joining::kStack));
  EXPECT_FALSE(join(list(array(DType::kFloat64, {2}, 0)), Joining::kStack));
  EXPECT_FALSE(join(list(std::string("a")), Joining::kStack));
}

TEST_F(ValueRowsTest, EmptyListsDecideNothing) {
  ASSERT_TRUE(join(list(array(DType::kInt64, {0}, 0)), Joining::kRagged));
  ASSERT_TRUE(join(list(array(DType::kFloat32, {1}, 0)), Joining::kRagged));
  const auto empty = join(list(array(DType::kInt64, {0}, 0)), Joining::kRagged);

  ASSERT_TRUE(empty) << empty.error().message();
  EXPECT_EQ(empty->dtype, DType::kFloat32);
}

}  // namespace
}  // namespace leat
