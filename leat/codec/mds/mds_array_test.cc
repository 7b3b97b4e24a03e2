#include "leat/codec/mds/mds_array.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "leat/base/buffer.h"

namespace leat {
namespace {

using namespace std::string_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr MdsItems kInt32 = {NpyKind::kSigned, 4};

std::string mds_error(const std::string& bytes,
                      const std::optional<MdsItems>& items = std::nullopt) {
  const auto header = read_mds_array(as_bytes(bytes), items);
  if (header) return "none";
  EXPECT_EQ(header.error().code(), ErrorCode::kCorrupt);
  return header.error().message();
}

TEST(MdsArrayTest, ReadsTypeAndShapeOfEachWidth) {
  // float32, two sides of one byte: 2 by 3.
  const std::string small = "\x22\x08\x02\x03"s + std::string(24, 'x');
  const auto header = read_mds_array(as_bytes(small), std::nullopt);
  ASSERT_TRUE(header) << header.error().message();
  EXPECT_EQ(header->kind, NpyKind::kFloat);
  EXPECT_EQ(header->item_bytes, 4u);
  EXPECT_THAT(header->shape, ElementsAre(2, 3));
  EXPECT_EQ(header->data_offset, 4u);

  for (const int width : {1, 2, 3}) {
    const std::size_t side_bytes = std::size_t{1} << width;
    std::string bytes(1, static_cast<char>(4 | width));
    bytes += "\x05"s + std::string(side_bytes - 1, '\0');
    const auto wide =
        read_mds_array(as_bytes(bytes + std::string(20, 'x')), kInt32);
    ASSERT_TRUE(wide) << wide.error().message();
    EXPECT_THAT(wide->shape, ElementsAre(5));
    EXPECT_EQ(wide->data_offset, 1 + side_bytes);
  }
}

TEST(MdsArrayTest, KnowsEveryTypeByCodeAndName) {
  constexpr std::pair<char, std::string_view> kKnown[] = {
      {8, "uint8"},    {9, "int8"},    {16, "uint16"}, {17, "int16"},
      {18, "float16"}, {32, "uint32"}, {33, "int32"},  {34, "float32"},
      {64, "uint64"},  {65, "int64"},  {66, "float64"}};
  for (const auto& [code, name] : kKnown) {
    const std::optional<MdsItems> items = mds_items_named(name);
    ASSERT_TRUE(items) << name;
    const std::string bytes =
        std::string(1, code) + "\x04\x01" + std::string(items->item_bytes, 'x');
    const auto header = read_mds_array(as_bytes(bytes), std::nullopt);
    ASSERT_TRUE(header) << name << header.error().message();
    EXPECT_EQ((MdsItems{header->kind, header->item_bytes}), *items);
  }
  EXPECT_EQ(mds_items_named("bool"), std::nullopt);
}

TEST(MdsArrayTest, CallsCorruptWhatIsNotWhole) {
  const std::string whole = "\x22\x08\x02\x03"s + std::string(24, 'x');
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_NE(mds_error(whole.substr(0, size)), "none") << size;
  }
  EXPECT_THAT(mds_error(whole + "x"), HasSubstr("25 bytes of items"));
}

TEST(MdsArrayTest, RefusesHostileHeads) {
  EXPECT_THAT(mds_error("\x07\x04\x01x"),
              HasSubstr("7 is the code of no type"));
  EXPECT_THAT(mds_error("\x00x"s, kInt32), HasSubstr("0 dimensions"));
  EXPECT_THAT(mds_error("\xfc"s + std::string(63, '\x01'), kInt32),
              HasSubstr("63 dimensions"));
  EXPECT_THAT(mds_error("\x04\x00"s, kInt32), HasSubstr("side 0 is 0"));
  // Sides whose product wraps around, and one that is negative as int64.
  EXPECT_THAT(mds_error("\x0e\x00\x00\x00\x40\x00\x00\x00\x40"
                        "\x00\x00\x00\x10"s,
                        kInt32),
              HasSubstr("side 0 is 1073741824"));
  EXPECT_THAT(mds_error("\x07"s + std::string(8, '\xff'), kInt32),
              HasSubstr("side 0 is 18446744073709551615"));
  // Sides that fit one by one.
  EXPECT_THAT(mds_error("\x0c\x10\x10\x10"s + std::string(16, 'x'), kInt32),
              HasSubstr("only 16 bytes"));
}

}  // namespace
}  // namespace leat
