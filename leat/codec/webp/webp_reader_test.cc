#include "leat/codec/webp/webp_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "leat/base/buffer.h"
#include "leat/codec/image/grey.h"
#include "leat/codec/image_formats.h"
#include "leat/codec/testing/encode_image.h"

namespace leat {
namespace {

using testing::animated_webp;
using testing::encode_webp;
using testing::exif_of;
using ::testing::HasSubstr;
using testing::picture;
using testing::Pixels;
using testing::with_webp_exif;

/// The wanted part; the reader's other pixels are cut off.
Result<Pixels> decode_webp(const std::string& encoded, const Rect& wanted,
                           PixelMode mode = PixelMode::kRgb) {
  LEAT_TRY(const ImageHeader header, read_image_header(as_bytes(encoded)));
  const auto reader = make_webp_reader();
  LEAT_TRY(const Rect got,
           reader->start(as_bytes(encoded), header, {mode, 0, wanted}));
  EXPECT_LE(got.x, wanted.x);
  EXPECT_GE(got.x + got.width, wanted.x + wanted.width);
  EXPECT_LE(got.x + got.width, header.width);
  EXPECT_EQ(got.y, wanted.y);
  EXPECT_EQ(got.height, wanted.height);
  const std::uint32_t channels = channels_of(mode);
  Pixels pixels{wanted.width, wanted.height, channels, {}};
  std::vector<std::uint8_t> row(std::size_t{got.width} * channels);
  for (std::uint32_t y = 0; y < wanted.height; ++y) {
    LEAT_TRY_VOID(reader->read_rows(row.data(), row.size(), 1));
    const auto begin = row.begin() + (wanted.x - got.x) * channels;
    pixels.bytes.insert(pixels.bytes.end(), begin,
                        begin + wanted.width * channels);
  }
  reader->finish();
  return pixels;
}

TEST(WebpReaderTest, LosslessIsWhatWasEncoded) {
  for (const std::uint32_t channels : {3u, 4u}) {
    const Pixels original = picture(37, 29, channels);
    const auto got =
        decode_webp(encode_webp(original, {.quality = 100}), {0, 0, 37, 29});

    ASSERT_TRUE(got) << got.error().message();
    for (std::uint32_t y = 0; y < 29; ++y) {
      for (std::uint32_t x = 0; x < 37; ++x) {
        // A wholly transparent pixel has no colour to keep.
        if (channels == 4 && original.at(x, y, 3) == 0) continue;
        for (std::uint32_t c = 0; c < 3; ++c) {
          ASSERT_EQ(got->at(x, y, c), original.at(x, y, c));
        }
      }
    }
  }
}

TEST(WebpReaderTest, LossyIsCloseToWhatWasEncoded) {
  const Pixels original = picture(64, 48);
  const auto got = decode_webp(encode_webp(original), {0, 0, 64, 48});

  ASSERT_TRUE(got) << got.error().message();
  double difference = 0;
  for (std::size_t i = 0; i < original.bytes.size(); ++i) {
    difference += std::abs(original.bytes[i] - got->bytes[i]);
  }
  EXPECT_LT(difference / static_cast<double>(original.bytes.size()), 16);
}

TEST(WebpReaderTest, APartIsEqualToThatOfTheWhole) {
  for (const float quality : {20.f, 75.f, 100.f}) {
    const std::string encoded =
        encode_webp(picture(75, 61), {.quality = quality});
    const auto whole = decode_webp(encoded, {0, 0, 75, 61});
    ASSERT_TRUE(whole);
    for (const Rect& part :
         {Rect{0, 0, 1, 1}, Rect{74, 60, 1, 1}, Rect{1, 1, 2, 2},
          Rect{17, 16, 33, 17}, Rect{31, 33, 20, 1}, Rect{40, 3, 1, 58},
          Rect{3, 40, 72, 21}}) {
      const auto got = decode_webp(encoded, part);
      ASSERT_TRUE(got) << got.error().message();
      for (std::uint32_t y = 0; y < part.height; ++y) {
        for (std::uint32_t x = 0; x < part.width; ++x) {
          for (std::uint32_t c = 0; c < 3; ++c) {
            ASSERT_EQ(got->at(x, y, c), whole->at(part.x + x, part.y + y, c))
                << quality << ": " << part.x + x << "," << part.y + y;
          }
        }
      }
    }
  }
}

TEST(WebpReaderTest, GreyIsTheLumaOfTheColour) {
  const std::string encoded = encode_webp(picture(30, 20), {.quality = 100});
  const auto colour = decode_webp(encoded, {0, 0, 30, 20});
  const auto grey = decode_webp(encoded, {0, 0, 30, 20}, PixelMode::kGrey);

  ASSERT_TRUE(colour && grey);
  std::vector<std::uint8_t> expected(30 * 20);
  rgb_to_grey(colour->bytes.data(), expected.data(), 30 * 20);
  EXPECT_EQ(grey->bytes, expected);
}

TEST(WebpHeaderTest, KnowsSizeAndOrientation) {
  const std::string plain = encode_webp(picture(33, 17));
  const auto header = read_image_header(as_bytes(plain));
  ASSERT_TRUE(header) << header.error().message();
  EXPECT_EQ(name_of(*header->codec), "WebP");
  EXPECT_EQ(header->width, 33u);
  EXPECT_EQ(header->height, 17u);
  EXPECT_EQ(header->orientation, 1);
  for (const std::string& mark : {std::string(), std::string("Exif\0\0", 6)}) {
    const auto turned = read_image_header(
        as_bytes(with_webp_exif(picture(33, 17), mark + exif_of(6))));
    ASSERT_TRUE(turned) << turned.error().message();
    EXPECT_EQ(turned->orientation, 6);
  }
}

TEST(WebpHeaderTest, IsCorruptWhereverItIsCut) {
  for (const std::string& whole :
       {encode_webp(picture(40, 30)),
        encode_webp(picture(40, 30), {.quality = 100}),
        with_webp_exif(picture(40, 30), exif_of(3)),
        animated_webp(40, 30, {picture(40, 30), picture(40, 30)})}) {
    for (std::size_t size = 0; size < whole.size(); ++size) {
      const auto header = read_image_header(as_bytes(whole.substr(0, size)));
      ASSERT_FALSE(header) << size << " of " << whole.size();
      EXPECT_EQ(header.error().code(), ErrorCode::kCorrupt);
    }
    EXPECT_TRUE(read_image_header(as_bytes(whole + "behind it")));
  }
}

TEST(WebpHeaderTest, RefusesWhatClaimsTooManyPixels) {
  const std::string encoded = encode_webp(picture(40, 30), {.quality = 100});
  const auto header = read_image_header(as_bytes(encoded), 1199);
  ASSERT_FALSE(header);
  EXPECT_THAT(header.error().message(),
              HasSubstr("WebP claims 40 x 30 pixels, more than the limit"));
  EXPECT_TRUE(read_image_header(as_bytes(encoded), 1200));
}

TEST(WebpReaderTest, OfAnAnimationTheFirstPicture) {
  for (const std::uint32_t channels : {3u, 4u}) {
    const Pixels first = picture(37, 29, channels);
    Pixels second = first;
    for (std::uint8_t& byte : second.bytes) byte ^= 0xff;
    const std::string encoded = animated_webp(37, 29, {first, second});

    const auto got = decode_webp(encoded, {3, 5, 20, 10});

    ASSERT_TRUE(got) << got.error().message();
    const auto expected =
        decode_webp(encode_webp(first, {.quality = 100}), {3, 5, 20, 10});
    EXPECT_EQ(got->bytes, expected->bytes);
  }
}

TEST(WebpHeaderTest, RefusesAnimationsWithoutAWholeFirstPicture) {
  const Pixels small = picture(8, 8);
  std::string no_pixels = animated_webp(8, 8, {small});
  no_pixels[no_pixels.find("VP8L") + 3] = '?';
  std::string elsewhere = animated_webp(8, 8, {small});
  elsewhere[elsewhere.find("ANMF") + 8] = 1;
  std::string below = animated_webp(8, 8, {small});
  below[below.find("ANMF") + 8 + 3] = 1;
  const std::vector<std::pair<std::string, std::string>> cases = {
      {animated_webp(8, 8, {}), "an animation without a picture"},
      {no_pixels, "whose first picture has no header"},
      {elsewhere, "covers a part of it only"},
      {below, "covers a part of it only"},
      {animated_webp(9, 8, {small}), "covers a part of it only"},
      {animated_webp(8, 9, {small, picture(8, 9)}), "covers a part of it only"},
  };
  for (const auto& [encoded, says] : cases) {
    const auto header = read_image_header(as_bytes(encoded));
    ASSERT_FALSE(header) << says;
    EXPECT_EQ(header.error().code(), ErrorCode::kCorrupt);
    EXPECT_THAT(header.error().message(), HasSubstr(says));
  }
}

TEST(WebpReaderTest, DamageIsCorruptOrPassedOver) {
  for (const std::string& whole :
       {encode_webp(picture(60, 40)),
        animated_webp(60, 40, {picture(60, 40), picture(60, 40)})}) {
    for (std::size_t at = 30; at < whole.size(); at += 3) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ 0x55);
      const auto got = decode_webp(damaged, {0, 0, 60, 40});
      if (got) continue;
      EXPECT_EQ(got.error().code(), ErrorCode::kCorrupt);
    }
  }
}

}  // namespace
}  // namespace leat
