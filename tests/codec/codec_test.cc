// A program with an image format of its own is a program like any other: its
// loaders decode such pictures as they decode PNGs of the same pixels, find
// their files and fields by their endings, and messages name the format.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "leat/base/buffer.h"
#include "leat/codec/image_formats.h"
#include "leat/codec/testing/encode_image.h"
#include "leat/index/selection.h"
#include "leat/pipeline/program/program.h"
#include "tests/loader/world.h"

namespace leat {
namespace {

using ::testing::HasSubstr;

std::string encode_toy(const testing::Pixels& pixels) {
  std::string encoded = "TOY!";
  encoded += static_cast<char>(pixels.width);
  encoded += static_cast<char>(pixels.height);
  return encoded.append(pixels.bytes.begin(), pixels.bytes.end());
}

std::string encode_as_png(const testing::Pixels& pixels) {
  return testing::encode_png(pixels);
}

constexpr std::uint32_t kPictures = 12;

class CodecOfOurOwnTest : public ::testing::Test {
 protected:
  /// A folder of pictures, each of a size of its own.
  std::string folder(const std::string& ending,
                     std::string (*encode)(const testing::Pixels&)) {
    const auto folder = world_.root() / ending;
    std::filesystem::create_directories(folder);
    for (std::uint32_t i = 0; i < kPictures; ++i) {
      std::ofstream(folder / (std::to_string(100 + i) + "." + ending),
                    std::ios::binary)
          << encode(testing::picture(40 + i, 60 - i));
    }
    return folder.string();
  }

  Hash128 hash(const std::string& url, const std::string& ops) {
    LoaderOptions options = usual_options();
    options.global_batch_size = 4;
    options.ops = must(parse_ops(ops));
    const auto loader = must(world_.load(url, options));
    const Seen seen = must(run_epoch(*loader));
    EXPECT_EQ(flat(seen).size(), kPictures);
    return seen.stats.content_hash;
  }

  World world_;
};

TEST_F(CodecOfOurOwnTest, LoadersDecodeItAsAPngOfThePixels) {
  const std::string toys = folder("toy", encode_toy);
  const std::string pngs = folder("png", encode_as_png);
  for (const std::string ops :
       {"decode_image,random_resized_crop:24,normalize:imagenet",
        "decode_image:L,resize:32,center_crop:20"}) {
    EXPECT_EQ(hash(toys, ops), hash(pngs, ops)) << ops;
  }
  EXPECT_NE(hash(toys, "decode_image,resize:32,center_crop:20"),
            hash(toys, "decode_image,resize:32,center_crop:21"));
}

TEST_F(CodecOfOurOwnTest, ItsFilesAndFieldsAreFoundByTheirEnding) {
  EXPECT_TRUE(is_image("a/b.toy"));
  EXPECT_TRUE(is_image("a/B.TOY"));
  EXPECT_FALSE(is_image("a/toy"));

  const auto fields = must(
      compile_ops(must(parse_ops("decode_image")), {{"x", {}}, {"toy", {}}}));
  ASSERT_EQ(fields.size(), 2u);
  EXPECT_EQ(fields[0].program, nullptr);
  EXPECT_NE(fields[1].program, nullptr);
}

TEST_F(CodecOfOurOwnTest, MessagesNameIt) {
  const auto message_of = [](const std::string& encoded,
                             std::uint64_t max_pixels = kDefaultMaxPixels) {
    const auto header = read_image_header(as_bytes(encoded), max_pixels);
    EXPECT_FALSE(header);
    return header ? "" : header.error().message();
  };
  EXPECT_THAT(message_of("<html>"),
              HasSubstr("neither JPEG, PNG, WebP, TIFF nor toy"));
  const std::string whole = encode_toy(testing::picture(9, 8));
  EXPECT_THAT(message_of(whole, 71), HasSubstr("toy claims 9 x 8 pixels"));
  for (std::size_t size = 4; size < whole.size(); ++size) {
    EXPECT_THAT(message_of(whole.substr(0, size)), HasSubstr("toy"));
  }

  const auto as_mask = must(
      compile_ops(must(parse_ops("decode_mask:field=toy")), {{"toy", {}}}));
  const ScratchRef scratch = make_scratch();
  Buffer out(std::size_t{9} * 8);
  RunNotes notes;
  const auto run = as_mask[0].program->run(as_bytes(whole), {7, 0, SampleId{0}},
                                           *scratch, out.span(), notes);
  ASSERT_FALSE(run);
  EXPECT_THAT(run.error().message(), HasSubstr("toy holds colours"));
}

}  // namespace
}  // namespace leat
