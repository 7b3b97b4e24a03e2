#include "leat/codec/tiff/tiff_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "leat/base/buffer.h"
#include "leat/codec/image/grey.h"
#include "leat/codec/image_formats.h"
#include "leat/codec/testing/encode_tiff.h"

namespace leat {
namespace {

using testing::encode_tiff;
using ::testing::HasSubstr;
using testing::picture;
using testing::Pixels;
using testing::TiffOptions;

/// Rows [y, y + rows) as bytes.
Result<std::vector<std::uint8_t>> decode_tiff(const std::string& encoded,
                                              PixelMode mode, std::uint32_t y,
                                              std::uint32_t rows) {
  LEAT_TRY(const ImageHeader header,
           read_image_header(as_bytes(encoded), 1 << 20));
  const auto reader = make_image_reader();
  LEAT_TRY(const Rect region,
           reader->start(as_bytes(encoded), header,
                         {mode, 0, {0, y, header.width, rows}}));
  EXPECT_EQ(region, (Rect{0, y, header.width, rows}));
  const std::size_t stride = std::size_t{header.width} * bytes_per_pixel(mode);
  std::vector<std::uint8_t> bytes(stride * rows);
  LEAT_TRY_VOID(reader->read_rows(bytes.data(), stride, rows));
  reader->finish();
  return bytes;
}

struct TiffKind {
  std::uint32_t channels = 1;
  TiffOptions options;
};

constexpr std::uint32_t kWidth = 37;
constexpr std::uint32_t kHeight = 29;

class TiffKindTest : public ::testing::TestWithParam<TiffKind> {};

TEST_P(TiffKindTest, DecodesToTheBytesThatWereEncoded) {
  const auto& [channels, options] = GetParam();
  const Pixels original = picture(kWidth, kHeight, channels);
  const std::string encoded = encode_tiff(original, options);
  for (const std::uint32_t y : {0u, 4u, 17u}) {
    const auto got = decode_tiff(encoded, PixelMode::kRgb, y, 12);
    ASSERT_TRUE(got) << got.error().message();
    for (std::uint32_t row = 0; row < 12; ++row) {
      for (std::uint32_t x = 0; x < kWidth; ++x) {
        for (std::uint32_t c = 0; c < 3; ++c) {
          const std::uint8_t stored =
              original.at(x, y + row, channels == 1 ? 0 : c);
          const int expected = options.is_white_0 ? 255 - stored : stored;
          ASSERT_EQ((*got)[(row * kWidth + x) * 3 + c], expected);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    AllKinds, TiffKindTest,
    ::testing::Values(TiffKind{1, {}}, TiffKind{1, {.depth = 16}},
                      TiffKind{3, {}}, TiffKind{4, {}},
                      TiffKind{3, {.depth = 16}}, TiffKind{4, {.depth = 16}},
                      TiffKind{1, {.is_big_endian = true}},
                      TiffKind{3, {.is_packed = true}},
                      TiffKind{1, {.tile_side = 16}},
                      TiffKind{4, {.is_packed = true, .tile_side = 48}},
                      TiffKind{1, {.is_white_0 = true}}));

TEST(TiffReaderTest, KeepsSixteenBitsOfGrey) {
  for (const bool is_big_endian : {false, true}) {
    for (const std::uint32_t tile_side : {0u, 16u}) {
      const Pixels original = picture(kWidth, kHeight, 1);
      const auto got =
          decode_tiff(encode_tiff(original, {.depth = 16,
                                             .is_big_endian = is_big_endian,
                                             .tile_side = tile_side}),
                      PixelMode::kGrey16, 5, 20);
      ASSERT_TRUE(got) << got.error().message();
      for (std::uint32_t y = 0; y < 20; ++y) {
        for (std::uint32_t x = 0; x < kWidth; ++x) {
          std::uint16_t value = 0;
          std::memcpy(&value, got->data() + (y * kWidth + x) * 2, sizeof value);
          ASSERT_EQ(value, original.at(x, y + 5, 0) << 8 | x);
        }
      }
    }
  }
}

TEST(TiffReaderTest, KeepsSixteenBitsOfColour) {
  for (const std::uint32_t channels : {1u, 3u, 4u}) {
    const Pixels original = picture(kWidth, kHeight, channels);
    const auto got = decode_tiff(encode_tiff(original, {.depth = 16}),
                                 PixelMode::kRgb16, 5, 20);
    ASSERT_TRUE(got) << got.error().message();
    for (std::uint32_t i = 0; i < kWidth * 20 * 3; ++i) {
      std::uint16_t value = 0;
      std::memcpy(&value, got->data() + i * 2, sizeof value);
      const std::uint32_t x = i / 3 % kWidth;
      const std::uint32_t c = channels == 1 ? 0 : i % 3;
      ASSERT_EQ(value, original.at(x, i / 3 / kWidth + 5, c) << 8 | x);
    }
  }
}

TEST(TiffReaderTest, MakesGreyOfColourByPillowsWeights) {
  const Pixels original = picture(kWidth, kHeight);
  const auto got =
      decode_tiff(encode_tiff(original), PixelMode::kGrey, 0, kHeight);
  ASSERT_TRUE(got) << got.error().message();
  std::vector<std::uint8_t> expected(kWidth * kHeight);
  rgb_to_grey(original.bytes.data(), expected.data(), kWidth * kHeight);
  EXPECT_EQ(*got, expected);
}

TEST(TiffReaderTest, TellsDepthAndOrientation) {
  const auto header = read_image_header(
      as_bytes(encode_tiff(picture(9, 7, 1), {.depth = 16, .orientation = 6})));
  ASSERT_TRUE(header) << header.error().message();
  EXPECT_EQ(name_of(*header->codec), "TIFF");
  EXPECT_EQ(header->width, 9u);
  EXPECT_EQ(header->height, 7u);
  EXPECT_EQ(header->depth, 16);
  EXPECT_TRUE(header->is_grey);
  EXPECT_EQ(header->orientation, 6);
}

std::string fault_of(const std::string& encoded) {
  const auto header = read_image_header(as_bytes(encoded));
  return header ? "none" : header.error().message();
}

TEST(TiffReaderTest, RefusesWhatItWouldReadWrongly) {
  const Pixels grey = picture(20, 20, 1);
  EXPECT_THAT(fault_of(encode_tiff(grey, {.sample_format = 2})),
              HasSubstr("sample format 2"));
  EXPECT_THAT(fault_of(encode_tiff(grey, {.depth = 16, .sample_format = 3})),
              HasSubstr("grey and RGB of 8 or 16 bits"));
  EXPECT_THAT(fault_of(encode_tiff(picture(8, 8, 2))),
              HasSubstr("2 channel(s) of 8 bits"));
  EXPECT_THAT(fault_of(encode_tiff(grey, {.has_second = true})),
              HasSubstr("several pictures"));
  EXPECT_THAT(fault_of(encode_tiff(grey, {.claimed_compression = 50000})),
              HasSubstr("compression 50000"));
  std::string big = encode_tiff(grey);
  big[2] = 43;
  EXPECT_THAT(fault_of(big), HasSubstr("BigTIFF"));
}

std::string with_width_and_height(std::string encoded, char low, char high) {
  // The values of the first two entries.
  for (const std::size_t at : {18u, 30u}) {
    encoded[at] = low;
    encoded[at + 1] = high;
  }
  return encoded;
}

TEST(TiffReaderTest, RefusesPixelsThatSoFewBytesCannotHold) {
  EXPECT_THAT(
      fault_of(with_width_and_height(encode_tiff(picture(8, 8, 1)), 0, 0x10)),
      HasSubstr("can hold"));
  EXPECT_THAT(
      fault_of(with_width_and_height(encode_tiff(picture(8, 8, 1)), 0, 0x7f)),
      HasSubstr("more than the limit"));
}

TEST(TiffReaderTest, RefusesTilesThatSoFewBytesCannotHold) {
  const auto got =
      decode_tiff(encode_tiff(picture(8, 8, 1),
                              {.tile_side = 16, .claimed_tile_side = 4096}),
                  PixelMode::kGrey, 0, 8);
  ASSERT_FALSE(got);
  EXPECT_THAT(got.error().message(), HasSubstr("larger tiles"));
}

TEST(TiffReaderTest, KeepsLabelsAsTheyAreStored) {
  const Pixels original = picture(kWidth, kHeight, 1);
  const auto got = decode_tiff(encode_tiff(original, {.is_white_0 = true}),
                               PixelMode::kLabels, 0, kHeight);
  ASSERT_TRUE(got) << got.error().message();
  EXPECT_EQ(*got, original.bytes);
  EXPECT_FALSE(decode_tiff(encode_tiff(original, {.depth = 16}),
                           PixelMode::kLabels, 0, kHeight));
  EXPECT_FALSE(
      decode_tiff(encode_tiff(picture(8, 8)), PixelMode::kLabels, 0, 8));
}

TEST(TiffReaderTest, RefusesAFileCutAnywhere) {
  for (const std::uint32_t tile_side : {0u, 16u}) {
    const std::string whole =
        encode_tiff(picture(20, 20), {.tile_side = tile_side});
    for (std::size_t size = 0; size < whole.size(); ++size) {
      const auto got =
          decode_tiff(whole.substr(0, size), PixelMode::kRgb, 0, 20);
      ASSERT_FALSE(got) << "cut to " << size;
      ASSERT_EQ(got.error().code(), ErrorCode::kCorrupt);
    }
  }
}

TEST(TiffReaderTest, SurvivesAnyFlippedByte) {
  for (const TiffOptions& options :
       {TiffOptions{}, TiffOptions{.is_packed = true},
        TiffOptions{.tile_side = 16}}) {
    const std::string whole = encode_tiff(picture(16, 16, 1), options);
    for (std::size_t i = 0; i < whole.size(); ++i) {
      for (const int flip : {0x5a, 0x80, 0xff}) {
        std::string damaged = whole;
        damaged[i] = static_cast<char>(damaged[i] ^ flip);
        (void)decode_tiff(damaged, PixelMode::kRgb, 0, 1);  // May fail.
      }
    }
  }
}

}  // namespace
}  // namespace leat
