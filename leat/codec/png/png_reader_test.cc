#include "leat/codec/png/png_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "leat/base/buffer.h"
#include "leat/codec/image/grey.h"
#include "leat/codec/image_formats.h"
#include "leat/codec/testing/encode_image.h"

namespace leat {
namespace {

using testing::encode_png;
using testing::picture;
using testing::Pixels;

Result<Pixels> decode_png(ImageReader& reader, const std::string& encoded,
                          PixelMode mode, std::uint32_t y, std::uint32_t rows) {
  LEAT_TRY(const ImageHeader header, read_image_header(as_bytes(encoded)));
  LEAT_TRY(const Rect region,
           reader.start(as_bytes(encoded), header,
                        {mode, 0, {0, y, header.width, rows}}));
  EXPECT_EQ(region, (Rect{0, y, header.width, rows}));
  Pixels pixels{header.width, rows, channels_of(mode), {}};
  const std::size_t stride = std::size_t{header.width} * pixels.channels;
  pixels.bytes.resize(stride * rows);
  LEAT_TRY_VOID(reader.read_rows(pixels.bytes.data(), stride, rows));
  return pixels;
}

struct PngKind {
  std::uint32_t channels;
  int depth;
  bool is_interlaced;
};

class PngKindTest : public ::testing::TestWithParam<PngKind> {};

TEST_P(PngKindTest, DecodesToTheBytesThatWereEncoded) {
  const auto [channels, depth, is_interlaced] = GetParam();
  const Pixels original = picture(37, 29, channels);
  const std::string encoded =
      encode_png(original, {.is_interlaced = is_interlaced, .depth = depth});
  const auto got =
      decode_png(*make_png_reader(), encoded, PixelMode::kRgb, 4, 20);

  ASSERT_TRUE(got) << got.error().message();
  const unsigned levels = depth >= 8 ? 255 : (1u << depth) - 1;
  for (std::uint32_t y = 0; y < 20; ++y) {
    for (std::uint32_t x = 0; x < 37; ++x) {
      for (std::uint32_t c = 0; c < 3; ++c) {
        const unsigned stored = original.at(x, y + 4, channels < 3 ? 0 : c);
        const unsigned expected =
            depth >= 8 ? stored : (stored >> (8 - depth)) * 255 / levels;
        ASSERT_EQ(got->at(x, y, c), expected) << x << "," << y << "," << c;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    AllKinds, PngKindTest,
    ::testing::Values(PngKind{1, 1, false}, PngKind{1, 2, false},
                      PngKind{1, 4, false}, PngKind{1, 8, false},
                      PngKind{1, 16, false}, PngKind{2, 8, false},
                      PngKind{2, 16, false}, PngKind{3, 8, false},
                      PngKind{3, 16, false}, PngKind{4, 8, false},
                      PngKind{4, 16, false}, PngKind{1, 4, true},
                      PngKind{3, 8, true}, PngKind{4, 16, true}));

TEST(PngReaderTest, KeepsSixteenBitsOfGrey) {
  for (const std::uint32_t channels : {1u, 2u}) {
    for (const bool is_interlaced : {false, true}) {
      const Pixels original = picture(19, 11, channels);
      const std::string encoded =
          encode_png(original, {.is_interlaced = is_interlaced, .depth = 16});
      const auto header = read_image_header(as_bytes(encoded));
      ASSERT_TRUE(header);
      EXPECT_EQ(header->depth, 16);
      EXPECT_TRUE(header->is_grey);
      const auto reader = make_png_reader();
      const auto started = reader->start(
          as_bytes(encoded), *header, {PixelMode::kGrey16, 0, {0, 2, 19, 9}});
      ASSERT_TRUE(started) << started.error().message();
      std::vector<std::uint16_t> rows(19 * 9);
      ASSERT_TRUE(reader->read_rows(
          reinterpret_cast<std::uint8_t*>(rows.data()), 19 * 2, 9));
      for (std::uint32_t y = 0; y < 9; ++y) {
        for (std::uint32_t x = 0; x < 19; ++x) {
          // The lower byte says where it stood.
          const unsigned upper = original.at(x, y + 2, 0);
          EXPECT_EQ(rows[y * 19 + x], upper << 8 | x * channels);
        }
      }
    }
  }
}

TEST(PngReaderTest, KeepsSixteenBitsOfColour) {
  for (const std::uint32_t channels : {1u, 3u, 4u}) {
    const Pixels original = picture(19, 11, channels);
    const std::string encoded = encode_png(original, {.depth = 16});
    const auto header = read_image_header(as_bytes(encoded));
    ASSERT_TRUE(header);
    const auto reader = make_png_reader();
    const auto started = reader->start(as_bytes(encoded), *header,
                                       {PixelMode::kRgb16, 0, {0, 2, 19, 9}});
    ASSERT_TRUE(started) << started.error().message();
    std::vector<std::uint16_t> rows(19 * 9 * 3);
    ASSERT_TRUE(reader->read_rows(reinterpret_cast<std::uint8_t*>(rows.data()),
                                  19 * 6, 9));
    for (std::uint32_t i = 0; i < rows.size(); ++i) {
      const std::uint32_t x = i / 3 % 19;
      const std::uint32_t c = channels == 1 ? 0 : i % 3;
      // The lower byte says where it stood.
      const unsigned upper = original.at(x, i / 3 / 19 + 2, c);
      EXPECT_EQ(rows[i], upper << 8 | (x * channels + c));
    }
  }
}

TEST(PngReaderTest, RefusesSixteenBitsOfWhatHasThemNot) {
  for (const Pixels& original : {picture(8, 8, 1), picture(8, 8, 3)}) {
    const std::string encoded = encode_png(original);
    const auto header = read_image_header(as_bytes(encoded));
    ASSERT_TRUE(header);
    EXPECT_EQ(header->depth, 8);
    EXPECT_FALSE(make_png_reader()->start(
        as_bytes(encoded), *header, {PixelMode::kGrey16, 0, {0, 0, 8, 8}}));
  }
}

TEST(PngReaderTest, MakesGreyOfColourByPillowsWeights) {
  const Pixels original = picture(30, 20);
  const auto got = decode_png(*make_png_reader(), encode_png(original),
                              PixelMode::kGrey, 0, 20);

  ASSERT_TRUE(got);
  std::vector<std::uint8_t> expected(30 * 20);
  rgb_to_grey(original.bytes.data(), expected.data(), 30 * 20);
  EXPECT_EQ(got->bytes, expected);
}

TEST(PngReaderTest, RefusesAFileCutAnywhere) {
  const std::string whole = encode_png(picture(20, 20));
  const auto reader = make_png_reader();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const auto got =
        decode_png(*reader, whole.substr(0, size), PixelMode::kRgb, 0, 4);
    ASSERT_FALSE(got) << "cut to " << size;
    ASSERT_EQ(got.error().code(), ErrorCode::kCorrupt);
  }
}

TEST(PngReaderTest, SurvivesAnyFlippedByte) {
  for (const bool is_interlaced : {false, true}) {
    const std::string whole =
        encode_png(picture(16, 16), {.is_interlaced = is_interlaced});
    const auto reader = make_png_reader();
    for (std::size_t i = 0; i < whole.size(); ++i) {
      std::string damaged = whole;
      damaged[i] = static_cast<char>(damaged[i] ^ 0x5a);
      const auto header = read_image_header(as_bytes(damaged), 1 << 16);
      if (!header) continue;
      (void)decode_png(*reader, damaged, PixelMode::kRgb, 0, 1);  // May fail.
    }
  }
}

}  // namespace
}  // namespace leat
