#include "leat/codec/tfrecord/feature_numbers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "leat/base/buffer.h"
#include "leat/codec/testing/tfrecord_builder.h"

namespace leat {
namespace {

using ::testing::HasSubstr;
using namespace testing;  // NOLINT: the builders of messages.

std::vector<std::int64_t> whole(const std::string& feature) {
  const auto numbers = read_feature_numbers(as_bytes(feature));
  EXPECT_TRUE(numbers) << numbers.error().message();
  return numbers ? std::get<0>(*numbers) : std::vector<std::int64_t>{-99};
}

std::vector<float> real(const std::string& feature) {
  const auto numbers = read_feature_numbers(as_bytes(feature));
  EXPECT_TRUE(numbers) << numbers.error().message();
  return numbers ? std::get<1>(*numbers) : std::vector<float>{-99};
}

std::string error_of(const std::string& feature) {
  const auto numbers = read_feature_numbers(as_bytes(feature));
  EXPECT_FALSE(numbers);
  if (numbers) return "";
  EXPECT_EQ(numbers.error().code(), ErrorCode::kCorrupt);
  return numbers.error().message();
}

TEST(FeatureNumbersTest, ReadsWholeNumbersOfAllSizes) {
  const std::vector<std::int64_t> numbers = {
      0,
      1,
      -1,
      127,
      128,
      300,
      std::numeric_limits<std::int64_t>::max(),
      std::numeric_limits<std::int64_t>::min()};

  EXPECT_EQ(whole(int64_feature(numbers)), numbers);
  EXPECT_EQ(whole(int64_feature({})), std::vector<std::int64_t>());
}

TEST(FeatureNumbersTest, ReadsFloats) {
  const std::vector<float> numbers = {0, -1.5F, 1e-40F,
                                      std::numeric_limits<float>::infinity()};

  EXPECT_EQ(real(float_feature(numbers)), numbers);
  EXPECT_EQ(real(float_feature({})), std::vector<float>());
}

TEST(FeatureNumbersTest, ReadsListsThatAreNotPacked) {
  EXPECT_EQ(whole(wire_field(3, "\x08\x07\x0a\x02\x01\x02\x08\x05")),
            (std::vector<std::int64_t>{7, 1, 2, 5}));
  EXPECT_EQ(real(wire_field(2, "\x0d" + little_endian(2.5F) + "\x0d" +
                                   little_endian(-4.0F))),
            (std::vector<float>{2.5F, -4.0F}));
}

TEST(FeatureNumbersTest, RefusesWhatIsNoListOfNumbers) {
  EXPECT_THAT(error_of(""), HasSubstr("no list"));
  EXPECT_THAT(error_of(bytes_feature({"x"})), HasSubstr("bytes_list"));
  EXPECT_THAT(error_of(wire_field(4, "")), HasSubstr("no list of numbers"));
  EXPECT_THAT(error_of(int64_feature({1}) + int64_feature({2})),
              HasSubstr("not one alone"));
  EXPECT_THAT(error_of(wire_field(2, wire_field(1, "12345"))),
              HasSubstr("damaged"));
  EXPECT_THAT(error_of(wire_field(3, wire_field(2, "\x01"))),
              HasSubstr("damaged"));
  EXPECT_THAT(error_of(wire_field(3, "\x0d" + little_endian(2.5F))),
              HasSubstr("damaged"));
}

TEST(FeatureNumbersTest, RefusesNumbersBeyond64Bits) {
  const std::string most = std::string(9, '\xff') + '\x01';

  EXPECT_EQ(whole(wire_field(3, wire_field(1, most))),
            std::vector<std::int64_t>{-1});
  EXPECT_THAT(
      error_of(wire_field(3, wire_field(1, std::string(9, '\xff') + '\x02'))),
      HasSubstr("damaged"));
  EXPECT_THAT(
      error_of(wire_field(3, wire_field(1, std::string(10, '\x80') + '\x01'))),
      HasSubstr("damaged"));
}

TEST(FeatureNumbersTest, RefusesEveryCut) {
  for (const std::string& feature :
       {int64_feature({1, 300, -1}), float_feature({1, 2})}) {
    for (std::size_t size = 0; size < feature.size(); ++size) {
      error_of(feature.substr(0, size));
    }
  }
}

}  // namespace
}  // namespace leat
