#include "leat/codec/image_formats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "leat/base/buffer.h"
#include "leat/codec/image/exif.h"
#include "leat/codec/testing/encode_image.h"

namespace leat {
namespace {

using testing::encode_jpeg;
using testing::encode_png;
using testing::exif_of;
using ::testing::HasSubstr;
using testing::picture;

Result<ImageHeader> header_of(const std::string& encoded) {
  return read_image_header(as_bytes(encoded));
}

std::string u32(std::uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) {
    bytes += static_cast<char>(value >> shift & 0xff);
  }
  return bytes;
}

TEST(ImageHeaderTest, KnowsAnImageByItsBytesNotItsName) {
  const auto jpeg = header_of(encode_jpeg(picture(33, 17)));
  const auto png = header_of(encode_png(picture(18, 41)));

  ASSERT_TRUE(jpeg);
  EXPECT_EQ(name_of(*jpeg->codec), "JPEG");
  EXPECT_EQ(jpeg->width, 33u);
  EXPECT_EQ(jpeg->height, 17u);
  ASSERT_TRUE(png);
  EXPECT_EQ(name_of(*png->codec), "PNG");
  EXPECT_EQ(png->width, 18u);
  EXPECT_EQ(png->height, 41u);
}

TEST(ImageHeaderTest, RefusesWhatIsNoImage) {
  EXPECT_THAT(header_of("").error().message(), HasSubstr("no bytes"));
  EXPECT_THAT(header_of("GIF89a....").error().message(),
              HasSubstr("neither JPEG, PNG, WebP nor TIFF"));
  EXPECT_EQ(header_of("<html>").error().code(), ErrorCode::kCorrupt);
}

TEST(ImageHeaderTest, RefusesAPngThatClaimsTooManyPixels) {
  std::string bomb = encode_png(picture(8, 8));
  bomb.replace(16, 8, u32(60'000) + u32(60'000));

  const auto header = header_of(bomb);

  ASSERT_FALSE(header);
  EXPECT_EQ(header.error().code(), ErrorCode::kCorrupt);
  EXPECT_THAT(header.error().message(),
              HasSubstr("60000 x 60000 pixels, more than the limit"));
}

TEST(ImageHeaderTest, RefusesPixelsThatSoFewBytesCannotHold) {
  std::string png = encode_png(picture(8, 8));
  png.replace(16, 8, u32(9'000) + u32(9'000));
  std::string jpeg = encode_jpeg(picture(8, 8));
  const std::size_t frame = jpeg.find("\xff\xc0");
  jpeg.replace(frame + 5, 4, "\x2f\xff\x2f\xff");

  EXPECT_THAT(header_of(png).error().message(), HasSubstr("can hold"));
  EXPECT_THAT(header_of(jpeg).error().message(), HasSubstr("can hold"));
}

TEST(ImageHeaderTest, FindsTheOrientationInBothFormats) {
  for (std::uint16_t i = 1; i <= 8; ++i) {
    const auto jpeg =
        header_of(encode_jpeg(picture(8, 8), {.exif = exif_of(i)}));
    const auto png = header_of(encode_png(picture(8, 8), {.exif = exif_of(i)}));
    ASSERT_TRUE(jpeg);
    ASSERT_TRUE(png);
    EXPECT_EQ(jpeg->orientation, i);
    EXPECT_EQ(png->orientation, i);
  }
}

TEST(ImageHeaderTest, IgnoresTheEndMarkerOfAThumbnail) {
  const std::string whole =
      encode_jpeg(picture(40, 40), {.exif = exif_of(1) + "\xff\xd9"});

  ASSERT_TRUE(header_of(whole));
  EXPECT_THAT(header_of(whole.substr(0, whole.size() - 2)).error().message(),
              HasSubstr("cut short"));
}

TEST(ExifTest, TakesDamageAsUpright) {
  EXPECT_EQ(exif_orientation(as_bytes(exif_of(6))), 6);
  EXPECT_EQ(exif_orientation(as_bytes(exif_of(9))), 1);
  EXPECT_EQ(exif_orientation(as_bytes(exif_of(0))), 1);
  EXPECT_EQ(exif_orientation({}), 1);
  const std::string whole = exif_of(6);
  for (std::size_t size = 0; size < 20; ++size) {
    EXPECT_EQ(exif_orientation(as_bytes(whole.substr(0, size))), 1);
  }
  std::string far = whole;
  far.replace(4, 4, "\xff\xff\xff\xff");
  EXPECT_EQ(exif_orientation(as_bytes(far)), 1);
}

TEST(ExifTest, ReadsLittleEndianToo) {
  const std::string_view intel(
      "II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x08\0\0\0\0\0\0\0", 26);

  EXPECT_EQ(exif_orientation(as_bytes(intel)), 8);
}

TEST(ImageHeaderTest, SaysWhatDecodingTakesBesidesAFewRows) {
  const auto bytes_of = [](const std::string& encoded) {
    const auto header = header_of(encoded);
    EXPECT_TRUE(header) << header.error().message();
    return header->working_bytes;
  };
  const testing::Pixels colour = picture(100, 60);
  constexpr std::uint64_t kPixels = 100 * 60;

  EXPECT_EQ(bytes_of(encode_jpeg(colour)), 0u);
  // 7 x 4 units of 16 x 16 pixels, each with 4 + 1 + 1 blocks.
  EXPECT_EQ(bytes_of(encode_jpeg(colour, {.is_progressive = true})),
            7u * 4 * 6 * 64 * 2);
  // 13 x 8 blocks, three times.
  EXPECT_EQ(bytes_of(encode_jpeg(colour, {.horizontal_sampling = 1,
                                          .vertical_sampling = 1,
                                          .is_progressive = true})),
            13u * 8 * 3 * 64 * 2);
  EXPECT_EQ(bytes_of(encode_png(colour)), 0u);
  EXPECT_EQ(bytes_of(encode_png(colour, {.is_interlaced = true})), 3 * kPixels);
  EXPECT_EQ(bytes_of(testing::encode_webp(colour)), 4 * kPixels);
  EXPECT_EQ(bytes_of(testing::encode_webp(colour, {.quality = 100})),
            7 * kPixels);
}

}  // namespace
}  // namespace leat
