#include "leat/bucket/byte_range.h"

#include <gtest/gtest.h>

namespace leat {
namespace {

RangeAnswer bytes(std::uint64_t offset, std::uint64_t size) {
  return RequestedRange{offset, size};
}

TEST(ByteRangeTest, ReadsTheThreeForms) {
  EXPECT_EQ(parse_range("bytes=0-0", 10), bytes(0, 1));
  EXPECT_EQ(parse_range("bytes=2-5", 10), bytes(2, 4));
  EXPECT_EQ(parse_range("bytes=7-", 10), bytes(7, 3));
  EXPECT_EQ(parse_range("bytes=-4", 10), bytes(6, 4));
}

TEST(ByteRangeTest, CutsAtTheEnd) {
  EXPECT_EQ(parse_range("bytes=5-99", 10), bytes(5, 5));
  EXPECT_EQ(parse_range("bytes=-99", 10), bytes(0, 10));
  EXPECT_EQ(parse_range("bytes=9-18446744073709551615", 10), bytes(9, 1));
  EXPECT_EQ(parse_range("bytes=9-99999999999999999999999", 10), bytes(9, 1));
}

TEST(ByteRangeTest, FindsNothingToSend) {
  EXPECT_EQ(parse_range("bytes=10-", 10), RangeAnswer(Unsatisfiable()));
  EXPECT_EQ(parse_range("bytes=10-20", 10), RangeAnswer(Unsatisfiable()));
  EXPECT_EQ(parse_range("bytes=99999999999999999999999-", 10),
            RangeAnswer(Unsatisfiable()));
  EXPECT_EQ(parse_range("bytes=-0", 10), RangeAnswer(Unsatisfiable()));
  EXPECT_EQ(parse_range("bytes=0-", 0), RangeAnswer(Unsatisfiable()));
  EXPECT_EQ(parse_range("bytes=-5", 0), RangeAnswer(Unsatisfiable()));
}

TEST(ByteRangeTest, PassesOverWhatItCannotRead) {
  for (const char* header :
       {"", "bytes", "bytes=", "bytes=-", "bytes=a-b", "bytes=1", "bytes=5-2",
        "bytes=0-1,3-4", "items=0-1", "bytes= 0-1", "bytes=+1-2", "bytes=0x1-2",
        "bytes=--1"}) {
    EXPECT_EQ(parse_range(header, 10), RangeAnswer(WholeObject())) << header;
  }
}

}  // namespace
}  // namespace leat
