#include "leat/codec/litdata/litdata_array.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <string>

#include "leat/base/buffer.h"

namespace leat {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string big(std::initializer_list<std::uint32_t> words) {
  std::string bytes;
  for (const std::uint32_t word : words) {
    for (const int shift : {24, 16, 8, 0}) {
      bytes += static_cast<char>(word >> shift & 0xff);
    }
  }
  return bytes;
}

std::string little(std::initializer_list<std::uint32_t> words) {
  std::string bytes;
  for (const std::uint32_t word : words) {
    for (const int shift : {0, 8, 16, 24}) {
      bytes += static_cast<char>(word >> shift & 0xff);
    }
  }
  return bytes;
}

std::string litdata_error(const std::string& bytes) {
  const auto header = read_litdata_array(as_bytes(bytes));
  if (header) return "none";
  EXPECT_EQ(header.error().code(), ErrorCode::kCorrupt);
  return header.error().message();
}

TEST(LitdataArrayTest, ReadsTensorsAndArraysOfNumpy) {
  // int16 as a tensor, and as an array.
  for (const std::string& head : {big({14, 2, 2, 3}), little({1, 2, 2, 3})}) {
    const std::string bytes = head + std::string(12, 'x');
    const auto header = read_litdata_array(as_bytes(bytes));
    ASSERT_TRUE(header) << header.error().message();
    EXPECT_EQ(header->kind, NpyKind::kSigned);
    EXPECT_EQ(header->item_bytes, 2u);
    EXPECT_THAT(header->shape, ElementsAre(2, 3));
    EXPECT_EQ(header->data_offset, 16u);
  }
}

TEST(LitdataArrayTest, ReadsNumbersAloneAndArraysWithoutItems) {
  const std::string number = big({0, 0}) + "abcd";
  const auto one = read_litdata_array(as_bytes(number));
  ASSERT_TRUE(one) << one.error().message();
  EXPECT_THAT(one->shape, IsEmpty());
  for (const std::string& none :
       {big({18, 2, 0, 0xffffffff}), little({3, 2, 0xffffffff, 0})}) {
    const auto header = read_litdata_array(as_bytes(none));
    ASSERT_TRUE(header) << header.error().message();
    EXPECT_EQ(header->data_offset, none.size());
  }
}

TEST(LitdataArrayTest, CallsCorruptWhatIsNotWhole) {
  for (const std::string& head :
       {big({17, 3, 1, 2, 2}), little({3, 2, 2, 2})}) {
    const std::string whole = head + std::string(32, 'x');
    ASSERT_EQ(litdata_error(whole), "none");
    for (std::size_t size = 0; size < whole.size(); ++size) {
      EXPECT_NE(litdata_error(whole.substr(0, size)), "none") << size;
    }
    EXPECT_THAT(litdata_error(whole + "x"), HasSubstr("33 bytes of items"));
  }
}

TEST(LitdataArrayTest, RefusesHostileHeads) {
  EXPECT_THAT(litdata_error(big({10, 0}) + "xx"), HasSubstr("10 is the code"));
  EXPECT_THAT(litdata_error(big({21, 0}) + "xx"), HasSubstr("of a tensor"));
  EXPECT_THAT(litdata_error(little({14, 2, 1, 1}) + "xx"),
              HasSubstr("14 is the code of no type of numbers of an array"));
  EXPECT_THAT(litdata_error(little({0xffffffff, 2})), HasSubstr("4294967295"));
  EXPECT_THAT(litdata_error(big({0, 33}) + std::string(200, 'x')),
              HasSubstr("dimensions; 0 to 32"));
  EXPECT_THAT(litdata_error(big({0, 0xffffffff})), HasSubstr("dimensions"));
  // Sides whose product wraps around: 2^32 bytes too many, and 0 of 2^64.
  EXPECT_THAT(litdata_error(big({0, 2, 0x80000000, 0x80000000}) + "abcd"),
              HasSubstr("only 4 bytes"));
  EXPECT_THAT(litdata_error(little({10, 3, 0x20000000, 0x80000000, 0x10})),
              HasSubstr("only 0 bytes"));
}

}  // namespace
}  // namespace leat
