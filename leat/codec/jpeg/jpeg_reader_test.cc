#include "leat/codec/jpeg/jpeg_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "leat/base/buffer.h"
#include "leat/codec/image_formats.h"
#include "leat/codec/testing/encode_image.h"

namespace leat {
namespace {

using testing::encode_jpeg;
using ::testing::HasSubstr;
using testing::JpegOptions;
using testing::picture;
using testing::Pixels;

/// The wanted part of an image, however much more the rows hold.
Result<Pixels> decode_jpeg(ImageReader& reader, const std::string& encoded,
                           DecodeRequest request) {
  LEAT_TRY(const ImageHeader header, read_image_header(as_bytes(encoded)));
  LEAT_TRY(const Rect rows, reader.start(as_bytes(encoded), header, request));
  const Rect& wanted = request.wanted;
  EXPECT_LE(rows.x, wanted.x);
  EXPECT_GE(rows.x + rows.width, wanted.x + wanted.width);
  const std::uint32_t channels = channels_of(request.mode);
  Pixels all{rows.width, wanted.height, channels, {}};
  const std::size_t stride = std::size_t{rows.width} * channels;
  all.bytes.resize(stride * wanted.height);
  LEAT_TRY_VOID(reader.read_rows(all.bytes.data(), stride, wanted.height));

  Pixels part{wanted.width, wanted.height, channels, {}};
  for (std::uint32_t y = 0; y < wanted.height; ++y) {
    const auto row =
        all.bytes.begin() + static_cast<std::ptrdiff_t>(
                                y * stride + (wanted.x - rows.x) * channels);
    part.bytes.insert(part.bytes.end(), row, row + wanted.width * channels);
  }
  return part;
}

Pixels cut(const Pixels& whole, const Rect& part) {
  Pixels cut{part.width, part.height, whole.channels, {}};
  for (std::uint32_t y = 0; y < part.height; ++y) {
    for (std::uint32_t x = 0; x < part.width; ++x) {
      for (std::uint32_t c = 0; c < whole.channels; ++c) {
        cut.bytes.push_back(whole.at(part.x + x, part.y + y, c));
      }
    }
  }
  return cut;
}

struct Sampling {
  int horizontal;
  int vertical;
  bool is_progressive;
};

class JpegCropTest : public ::testing::TestWithParam<Sampling> {};

// A crop must not show where it was cut: every pixel is that of the whole.
TEST_P(JpegCropTest, EqualsTheSamePartOfTheWhole) {
  const JpegOptions options{.horizontal_sampling = GetParam().horizontal,
                            .vertical_sampling = GetParam().vertical,
                            .is_progressive = GetParam().is_progressive};
  const std::string encoded = encode_jpeg(picture(203, 149), options);
  const auto reader = make_jpeg_reader();
  std::uint32_t random = 7;
  const auto below = [&](std::uint32_t n) {
    random = random * 1664525u + 1013904223u;
    return (random >> 8) % n;
  };
  for (const std::uint32_t shrink : {0u, 1u, 2u, 3u}) {
    const std::uint32_t width = (203 + (1u << shrink) - 1) >> shrink;
    const std::uint32_t height = (149 + (1u << shrink) - 1) >> shrink;
    const auto whole = decode_jpeg(
        *reader, encoded, {PixelMode::kRgb, shrink, {0, 0, width, height}});
    ASSERT_TRUE(whole) << whole.error().message();
    for (int i = 0; i < 60; ++i) {
      Rect part;
      part.width = 1 + below(width);
      part.height = 1 + below(height);
      part.x = below(width - part.width + 1);
      part.y = below(height - part.height + 1);
      const auto got =
          decode_jpeg(*reader, encoded, {PixelMode::kRgb, shrink, part});
      ASSERT_TRUE(got) << got.error().message();
      ASSERT_EQ(got->bytes, cut(*whole, part).bytes)
          << part.x << "," << part.y << " " << part.width << "x" << part.height
          << " at 1/" << (1 << shrink);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    AllSamplings, JpegCropTest,
    ::testing::Values(Sampling{1, 1, false}, Sampling{2, 1, false},
                      Sampling{1, 2, false}, Sampling{2, 2, false},
                      Sampling{4, 1, false}, Sampling{1, 1, true},
                      Sampling{2, 2, true}));

TEST(JpegReaderTest, DecodesCloseToWhatWasEncoded) {
  const Pixels original = picture(64, 48);
  const std::string encoded = encode_jpeg(
      original,
      {.quality = 100, .horizontal_sampling = 1, .vertical_sampling = 1});
  const auto got = decode_jpeg(*make_jpeg_reader(), encoded,
                               {PixelMode::kRgb, 0, {0, 0, 64, 48}});

  ASSERT_TRUE(got);
  for (std::size_t i = 0; i < original.bytes.size(); ++i) {
    ASSERT_NEAR(got->bytes[i], original.bytes[i], 3);
  }
}

TEST(JpegReaderTest, TurnsGreyIntoThreeEqualChannels) {
  const std::string encoded = encode_jpeg(picture(20, 10, 1));
  const auto reader = make_jpeg_reader();
  const auto grey =
      decode_jpeg(*reader, encoded, {PixelMode::kGrey, 0, {0, 0, 20, 10}});
  const auto rgb =
      decode_jpeg(*reader, encoded, {PixelMode::kRgb, 0, {0, 0, 20, 10}});

  ASSERT_TRUE(grey);
  ASSERT_TRUE(rgb);
  for (std::uint32_t x = 0; x < 20; ++x) {
    for (std::uint32_t c = 0; c < 3; ++c) {
      EXPECT_EQ(rgb->at(x, 5, c), grey->at(x, 5, 0));
    }
  }
}

TEST(JpegReaderTest, TakesCmykAsInvertedAndMixesItWithBlack) {
  Pixels inks{16, 16, 4, {}};
  for (int i = 0; i < 256; ++i) {
    inks.bytes.insert(inks.bytes.end(), {200, 100, 255, 128});
  }
  const std::string encoded = encode_jpeg(inks, {.quality = 100});
  const auto got = decode_jpeg(*make_jpeg_reader(), encoded,
                               {PixelMode::kRgb, 0, {0, 0, 16, 16}});

  ASSERT_TRUE(got);
  EXPECT_NEAR(got->at(8, 8, 0), 200.0 * 128 / 255, 1);
  EXPECT_NEAR(got->at(8, 8, 1), 100.0 * 128 / 255, 1);
  EXPECT_NEAR(got->at(8, 8, 2), 128, 1);
}

TEST(JpegReaderTest, CountsDamageThatItCouldPassOver) {
  std::string encoded = encode_jpeg(picture(160, 120), {.restart_rows = 1});
  const std::size_t middle = encoded.size() / 2;
  for (std::size_t i = 0; i < 40; ++i) encoded[middle + i] = 0x55;
  const auto reader = make_jpeg_reader();
  const auto got =
      decode_jpeg(*reader, encoded, {PixelMode::kRgb, 0, {0, 0, 160, 120}});

  ASSERT_TRUE(got) << got.error().message();
  EXPECT_GT(reader->warnings(), 0u);
}

TEST(JpegReaderTest, IsAsGoodAsNewAfterAnError) {
  const std::string good = encode_jpeg(picture(40, 30));
  std::string bad = good;
  // A Huffman table that says it has more codes than there can be.
  const std::size_t table = bad.find("\xff\xc4");
  for (std::size_t i = 5; i < 21; ++i) bad[table + i] = '\xff';
  const auto reader = make_jpeg_reader();
  const DecodeRequest request{PixelMode::kRgb, 0, {0, 0, 40, 30}};
  const auto before = decode_jpeg(*reader, good, request);
  const auto failed = decode_jpeg(*reader, bad, request);
  const auto after = decode_jpeg(*reader, good, request);

  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code(), ErrorCode::kCorrupt);
  EXPECT_THAT(failed.error().message(), HasSubstr("JPEG: "));
  ASSERT_TRUE(before);
  ASSERT_TRUE(after);
  EXPECT_EQ(before->bytes, after->bytes);
}

TEST(JpegReaderTest, RefusesAFileCutAnywhere) {
  const std::string whole = encode_jpeg(picture(50, 40));
  const auto reader = make_jpeg_reader();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const auto got = decode_jpeg(*reader, whole.substr(0, size),
                                 {PixelMode::kRgb, 0, {0, 0, 50, 10}});
    ASSERT_FALSE(got) << "cut to " << size;
    ASSERT_EQ(got.error().code(), ErrorCode::kCorrupt);
  }
}

}  // namespace
}  // namespace leat
