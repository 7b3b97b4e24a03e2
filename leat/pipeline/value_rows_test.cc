#include "leat/pipeline/value_rows.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace leat {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class AnyProgram final : public ValueProgram {
 public:
  explicit AnyProgram(Joining joining) : joining_(joining) {}
  Joining joining() const override { return joining_; }
  std::uint64_t most_bytes(std::uint64_t encoded_bytes) const override {
    return encoded_bytes;
  }
  Result<Value> run(std::span<const std::byte>, const SampleRandom&, Scratch&,
                    RunNotes&) const override {
    return Error(ErrorCode::kInternal, "never run");
  }
  std::string remedy() const override { return "do this"; }

 private:
  const Joining joining_;
};

Value array(DType dtype, std::vector<std::int64_t> shape, char fill) {
  ArrayValue value{{dtype, std::move(shape)}, {}};
  value.bytes = Buffer(value.spec.size_bytes());
  std::ranges::fill(value.bytes.span(), static_cast<std::byte>(fill));
  return value;
}

struct ValueRowsTest : ::testing::Test {
  Result<FieldArray> join(std::vector<Value> values, Joining joining) {
    ValueRows rows(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      rows.put(i, std::move(values[i]));
    }
    return join(rows, joining);
  }
  Result<FieldArray> join(ValueRows& rows, Joining joining) {
    FieldArray into{.name = "x"};
    const auto key_of = [](std::size_t row) { return fmt::format("k{}", row); };
    LEAT_TRY_VOID(
        rows.join(AnyProgram(joining), key_of, slots, learned, 3, into));
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

  SlotPool slots{0, std::make_shared<Metrics>()};
  LearnedShapes learned;
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

TEST_F(ValueRowsTest, SubstitutesWhatIsMissing) {
  ValueRows rows(3);
  rows.put(0, array(DType::kUint8, {1}, 'a'));
  rows.put(2, array(DType::kUint8, {1}, 'c'));
  rows.substitute(1, 2);

  const auto field = join(rows, Joining::kStack);

  ASSERT_TRUE(field) << field.error().message();
  EXPECT_EQ(text(*field), "acc");
}

}  // namespace
}  // namespace leat
