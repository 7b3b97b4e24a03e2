#include "leat/index/tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "leat/store/memory/memory_store.h"

namespace leat {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

/// A version 1.0 header, padded to 64 bytes, before `items` bytes.
std::string npy(const std::string& descr, const std::string& shape,
                std::size_t items) {
  std::string dict = "{'descr': '" + descr +
                     "', 'fortran_order': False, 'shape': " + shape + ", }";
  dict.resize(117, ' ');
  dict += '\n';
  std::string file = "\x93NUMPY";
  file += '\x01';
  file += '\0';
  file += static_cast<char>(dict.size());
  file += '\0';
  return file + dict + std::string(items, 'x');
}

Result<Catalogue> catalogue_of(MemoryObjects objects,
                               std::string_view file = {},
                               std::string_view dtype = "uint16",
                               std::uint64_t seq_len = 5,
                               std::uint64_t stride = 0) {
  const auto store = open_memory_store(std::move(objects));
  LEAT_TRY(const TokenWindows windows, token_windows(dtype, seq_len, stride));
  IndexOptions options;
  if (!file.empty()) options.selection.patterns = {std::string(file)};
  LEAT_TRY(BuiltCatalogue built,
           build_token_windows(*store, "set", windows, options, {}));
  return Catalogue::open(std::move(built.bytes));
}

TEST(TokensTest, FilesAreCutIntoWindowsThatDoNotOverlap) {
  const Result<Catalogue> catalogue =
      catalogue_of({{"set/a.bin", std::string(34, 'a')},
                    {"set/b.npy", npy("<u2", "(11,)", 22)},
                    {"set/readme.txt", "not tokens"}});

  ASSERT_TRUE(catalogue) << catalogue.error().message();
  ASSERT_EQ(catalogue->samples(), 5u);  // 17 tokens and 11, by fives.
  EXPECT_EQ(catalogue->layout(), Layout::kShards);
  EXPECT_EQ(catalogue->range(0, {0}), (ByteRange{{0}, 0, 10}));
  EXPECT_EQ(catalogue->range(0, {2}), (ByteRange{{0}, 20, 10}));
  EXPECT_EQ(catalogue->range(0, {4}), (ByteRange{{1}, 138, 10}));
  EXPECT_EQ(catalogue->key({3}), "b.npy:0");
}

TEST(TokensTest, OneFileIsNotListed) {
  const Result<Catalogue> catalogue =
      catalogue_of({{"set/a.bin", std::string(20, 'a')},
                    {"set/b.bin", std::string(20, 'b')}},
                   "b.bin");

  ASSERT_TRUE(catalogue) << catalogue.error().message();
  EXPECT_EQ(catalogue->samples(), 2u);
  EXPECT_EQ(catalogue->object({0}).key, "b.bin");
}

TEST(TokensTest, WindowsOverlapWhereTheStrideIsShorter) {
  const auto offsets = [](std::size_t bytes, std::uint64_t stride) {
    const auto catalogue = catalogue_of(
        {{"set/a.bin", std::string(bytes, 'a')}}, {}, "uint16", 5, stride);
    std::vector<std::uint64_t> found;
    for (SampleId i; i.value < catalogue->samples(); ++i.value) {
      found.push_back(catalogue->range(0, i).offset);
      EXPECT_EQ(catalogue->range(0, i).length_bytes, 10u);
    }
    return found;
  };
  using Offsets = std::vector<std::uint64_t>;

  EXPECT_EQ(offsets(20, 2), (Offsets{0, 4, 8}));
  EXPECT_EQ(offsets(22, 2), (Offsets{0, 4, 8, 12}));
  EXPECT_EQ(offsets(10, 1), (Offsets{0}));
  EXPECT_EQ(offsets(20, 5), (Offsets{0, 10}));
  EXPECT_THAT(token_windows("uint16", 5, 6).error().message(),
              HasSubstr("stride=6 is more than seq_len=5"));
}

TEST(TokensTest, AFileOfSomethingElseIsNamed) {
  const auto message = [](const std::string& key, const std::string& file) {
    const auto catalogue = catalogue_of({{"set/" + key, file}});
    EXPECT_FALSE(catalogue);
    return catalogue ? "" : catalogue.error().message();
  };

  EXPECT_THAT(
      message("a.bin", "123"),
      AllOf(HasSubstr("a.bin"), HasSubstr("3 bytes"), HasSubstr("uint16")));
  EXPECT_THAT(message("a.npy", npy("<i4", "(5,)", 20)),
              HasSubstr("of int32, not uint16"));
  EXPECT_THAT(message("a.npy", npy("<u2", "(5, 2)", 20)),
              HasSubstr("2 dimensions"));
  EXPECT_THAT(message("a.npy", npy("<u2", "(50,)", 20)), HasSubstr("a.npy"));
  EXPECT_THAT(message("a.npy", "no array"), HasSubstr("a.npy"));
  EXPECT_THAT(message("a.npy", ""), HasSubstr("a.npy"));
  EXPECT_THAT(message("a.bin", "1234"), HasSubstr("holds 5 tokens"));
}

TEST(TokensTest, OptionsThatCannotBeAreRefused) {
  EXPECT_THAT(token_windows("bfloat16", 5).error().message(),
              HasSubstr("uint8, uint16"));
  EXPECT_FALSE(token_windows("uint16", 0));
  EXPECT_FALSE(token_windows("uint16", ~std::uint64_t{0}));
}

}  // namespace
}  // namespace leat
