#include "leat/pipeline/ops/mix_samples.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "leat/pipeline/ops/small_floats.h"

namespace leat {
namespace {

template <class T>
std::span<std::byte> bytes_of(std::vector<T>& numbers) {
  return std::as_writable_bytes(std::span(numbers));
}

/// Small whole numbers that differ from sample to sample.
std::vector<double> samples_of(std::size_t samples, std::size_t count) {
  std::vector<double> numbers(samples * count);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = static_cast<double>((i * 7 + i / count * 3) % 61);
  }
  return numbers;
}

/// A share of a quarter is exact in each type for such numbers.
std::vector<double> blended(const std::vector<double>& from,
                            std::size_t samples) {
  const std::size_t count = from.size() / samples;
  std::vector<double> made(from.size());
  for (std::size_t i = 0; i < from.size(); ++i) {
    const std::size_t before = (i + from.size() - count) % from.size();
    made[i] = from[i] * 0.25 + from[before] * 0.75;
  }
  return made;
}

template <class T, class Make, class ValueOf>
void expect_blended(DType dtype, const Make& make, const ValueOf& value_of) {
  for (const std::size_t samples : {1U, 2U, 5U}) {
    // Less than a block, and several with a rest.
    for (const std::size_t count : {1U, 37U, 4096U, 10'001U}) {
      const std::vector<double> from = samples_of(samples, count);
      std::vector<T> batch;
      for (const double one : from) batch.push_back(make(one));
      blend_samples(bytes_of(batch), samples, dtype, 0.25);
      std::vector<double> got;
      for (const T one : batch) got.push_back(value_of(one));
      ASSERT_EQ(got, blended(from, samples)) << samples << " of " << count;
    }
  }
}

TEST(MixSamplesTest, BlendsEachWithTheOneBeforeIt) {
  const auto as_float = [](double one) { return static_cast<float>(one); };
  expect_blended<float>(DType::kFloat32, as_float, std::identity());
  expect_blended<double>(DType::kFloat64, std::identity(), std::identity());
  expect_blended<std::uint16_t>(
      DType::kFloat16, [&](double one) { return to_float16(as_float(one)); },
      of_float16);
}

TEST(MixSamplesTest, BlendsBfloat16) {
  std::vector<std::uint16_t> batch;
  for (const float one : {4.0F, 8.0F, 16.0F}) {
    batch.push_back(to_bfloat16(one));
  }
  blend_samples(bytes_of(batch), 3, DType::kBfloat16, 0.25);
  EXPECT_EQ(of_bfloat16(batch[0]), 13.0F);
  EXPECT_EQ(of_bfloat16(batch[1]), 5.0F);
  EXPECT_EQ(of_bfloat16(batch[2]), 10.0F);
}

TEST(MixSamplesTest, BlendsFloatsAlone) {
  EXPECT_TRUE(can_blend(DType::kFloat32));
  EXPECT_FALSE(can_blend(DType::kUint8));
  EXPECT_FALSE(can_blend(DType::kComplex64));
}

TEST(MixSamplesTest, PastesThePartOfTheOneBefore) {
  const PlanesOfRows shape{.planes = 3, .rows = 5, .row_bytes = 7};
  const PartOfRows part{.first_row = 1, .rows = 3, .first_byte = 2, .bytes = 4};
  const std::size_t size = shape.planes * shape.rows * shape.row_bytes;
  for (const std::size_t samples : {1U, 2U, 5U}) {
    std::vector<std::uint8_t> from(samples * size);
    for (std::size_t i = 0; i < from.size(); ++i) {
      from[i] = static_cast<std::uint8_t>(i * 11 + i / size);
    }
    std::vector<std::uint8_t> expected = from;
    for (std::size_t i = 0; i < from.size(); ++i) {
      const std::size_t row = i / shape.row_bytes % shape.rows;
      const std::size_t byte = i % shape.row_bytes;
      const bool is_in = row >= 1 && row < 4 && byte >= 2 && byte < 6;
      if (is_in) expected[i] = from[(i + from.size() - size) % from.size()];
    }
    std::vector<std::uint8_t> batch = from;
    paste_samples(bytes_of(batch), shape, part);
    ASSERT_EQ(batch, expected) << samples;
  }
}

TEST(MixSamplesTest, LeavesEmptyBatchesAndEmptyPartsAlone) {
  std::vector<float> none;
  blend_samples(bytes_of(none), 0, DType::kFloat32, 0.5);
  std::vector<float> two = {1, 2};
  paste_samples(bytes_of(two), {.planes = 1, .rows = 1, .row_bytes = 4},
                {.first_row = 1, .rows = 0, .first_byte = 0, .bytes = 4});
  EXPECT_EQ(two, std::vector<float>({1, 2}));
}

}  // namespace
}  // namespace leat
