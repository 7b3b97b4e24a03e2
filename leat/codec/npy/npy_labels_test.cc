#include "leat/codec/npy/npy_labels.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "leat/base/buffer.h"
#include "leat/codec/image_formats.h"

namespace leat {
namespace {

using namespace std::string_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string npy_of(const std::string& descr, const std::string& shape,
                   const std::string& items) {
  const std::string dict =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}\n",
                  descr, shape);
  return "\x93NUMPY\x01\0"s + static_cast<char>(dict.size()) + '\0' + dict +
         items;
}

template <class Number>
std::string items_of(const std::vector<Number>& numbers) {
  std::string items(numbers.size() * sizeof(Number), '\0');
  std::memcpy(items.data(), numbers.data(), items.size());
  return items;
}

/// The pixels of `wanted`, row by row.
Result<std::vector<std::uint8_t>> labels_of(const std::string& encoded,
                                            const Rect& wanted) {
  LEAT_TRY(const ImageHeader header, read_image_header(as_bytes(encoded)));
  const auto reader = make_image_reader();
  LEAT_TRY(const Rect decoded,
           reader->start(as_bytes(encoded), header,
                         {PixelMode::kLabels, /*shrink_log2=*/0, wanted}));
  EXPECT_EQ(decoded, wanted);
  std::vector<std::uint8_t> pixels(std::size_t{wanted.width} * wanted.height);
  LEAT_TRY_VOID(reader->read_rows(pixels.data(), wanted.width, wanted.height));
  reader->finish();
  return pixels;
}

Error labels_error(const std::string& encoded) {
  const auto labels = labels_of(encoded, {0, 0, 3, 2});
  EXPECT_FALSE(labels);
  return labels ? Error(ErrorCode::kInternal, "none") : labels.error();
}

template <class Number>
class NpyLabelsTypeTest : public ::testing::Test {};
using Numbers =
    ::testing::Types<std::uint8_t, std::int16_t, std::uint16_t, std::int32_t,
                     std::uint32_t, std::int64_t, std::uint64_t>;
TYPED_TEST_SUITE(NpyLabelsTypeTest, Numbers);

TYPED_TEST(NpyLabelsTypeTest, ReadsTheRectangleThatIsWanted) {
  const char kind = std::is_signed_v<TypeParam> ? 'i' : 'u';
  const std::string mask = npy_of(
      fmt::format("<{}{}", kind, sizeof(TypeParam)), "(3, 4)",
      items_of<TypeParam>({0, 1, 2, 3, 10, 11, 12, 255, 20, 21, 22, 23}));

  const auto header = read_image_header(as_bytes(mask));
  ASSERT_TRUE(header) << header.error().message();
  EXPECT_EQ(name_of(*header->codec), ".npy");
  EXPECT_EQ(header->width, 4u);
  EXPECT_EQ(header->height, 3u);
  const auto labels = labels_of(mask, {2, 1, 2, 2});
  ASSERT_TRUE(labels) << labels.error().message();
  EXPECT_THAT(*labels, ElementsAre(12, 255, 22, 23));
}

TEST(NpyLabelsTest, TakesBools) {
  const std::string mask = npy_of("|b1", "(1, 3)", "\x00\x01\x01"s);

  EXPECT_THAT(*labels_of(mask, {0, 0, 3, 1}), ElementsAre(0, 1, 1));
}

TEST(NpyLabelsTest, ANumberThatIsNoLabelIsNamedWithItsPlace) {
  const std::string minus =
      npy_of("<i8", "(2, 3)", items_of<std::int64_t>({0, 1, 2, 3, 4, -1}));
  const std::string many =
      npy_of("<u2", "(2, 3)", items_of<std::uint16_t>({0, 1, 2, 256, 4, 5}));

  EXPECT_EQ(labels_error(minus).code(), ErrorCode::kCorrupt);
  EXPECT_THAT(labels_error(minus).message(),
              HasSubstr("-1 at row 1, column 2"));
  EXPECT_THAT(labels_error(many).message(),
              HasSubstr("256 at row 1, column 0"));
  EXPECT_TRUE(labels_of(minus, {0, 0, 3, 1}));  // It is not in this part.
}

TEST(NpyLabelsTest, RefusesWhatIsNoMask) {
  EXPECT_THAT(
      labels_error(npy_of("<f4", "(2, 3)", std::string(24, 'x'))).message(),
      HasSubstr("whole numbers"));
  EXPECT_THAT(labels_error(npy_of("|u1", "(2, 3, 1)", "123456")).message(),
              HasSubstr("3 dimensions"));
  EXPECT_EQ(labels_error(npy_of("|u1", "(0, 3)", "")).code(),
            ErrorCode::kCorrupt);
  const auto large =
      read_image_header(as_bytes(npy_of("|u1", "(2, 3)", "123456")), 5);
  ASSERT_FALSE(large);
  EXPECT_THAT(large.error().message(), HasSubstr("more than the limit of 5"));
}

TEST(NpyLabelsTest, RefusesToBeAPicture) {
  const std::string mask = npy_of("|u1", "(2, 3)", "123456");
  const auto header = read_image_header(as_bytes(mask));
  ASSERT_TRUE(header);

  const auto started = make_image_reader()->start(
      as_bytes(mask), *header, {PixelMode::kRgb, 0, {0, 0, 3, 2}});

  ASSERT_FALSE(started);
  EXPECT_THAT(started.error().message(), HasSubstr("DecodeMask"));
}

TEST(NpyLabelsTest, AFileCutAtAnyByteIsRefused) {
  const std::string mask = npy_of("<i2", "(2, 3)", std::string(12, '\0'));
  for (std::size_t size = 0; size < mask.size(); ++size) {
    EXPECT_FALSE(read_image_header(as_bytes(mask.substr(0, size)))) << size;
  }
  EXPECT_TRUE(read_image_header(as_bytes(mask)));
}

}  // namespace
}  // namespace leat
