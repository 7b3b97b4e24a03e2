#include "leat/codec/hdf5/chunk_filters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "leat/base/buffer.h"

namespace leat {
namespace {

using ::testing::HasSubstr;

std::string text_of(std::span<const std::byte> bytes) {
  return std::string(as_text(bytes));
}

std::string lzf(std::string_view bytes, std::uint64_t size) {
  const auto made = undo_lzf(as_bytes(bytes), size);
  return made ? text_of(made->span()) : made.error().message();
}

TEST(UndoLzfTest, CopiesAndRepeats) {
  // "abc", then 5 from 3 back, then 9 + 2 from 1 back.
  using namespace std::string_view_literals;
  const auto bytes =
      "\x02"
      "abc\x60\x02\xe0\x02\x00"sv;
  EXPECT_EQ(lzf(bytes, 19), "abcabcab" + std::string(11, 'b'));
  EXPECT_EQ(lzf("", 0), "");
}

TEST(UndoLzfTest, RefusesEveryCutAndEveryOtherSize) {
  using namespace std::string_view_literals;
  const auto bytes =
      "\x02"
      "abc\x60\x02\xe0\x02\x00"sv;
  for (std::size_t cut = 0; cut < bytes.size(); ++cut) {
    EXPECT_THAT(lzf(bytes.substr(0, cut), 19), HasSubstr("lzf: ")) << cut;
  }
  EXPECT_THAT(lzf(bytes, 18), HasSubstr("more"));
  EXPECT_THAT(lzf(bytes, 20), HasSubstr("19 bytes of 20"));
  EXPECT_THAT(lzf(bytes, std::uint64_t{1} << 50), HasSubstr("too short"));
  EXPECT_THAT(lzf("\x20\x05", 3), HasSubstr("before its first"));
}

TEST(UndoShuffleTest, PutsTheBytesOfItemsTogether) {
  EXPECT_EQ(text_of(undo_shuffle(as_bytes("acebdfx"), 2).span()), "abcdefx");
  EXPECT_EQ(text_of(undo_shuffle(as_bytes("abc"), 1).span()), "abc");
  EXPECT_EQ(text_of(undo_shuffle(as_bytes("abc"), 4).span()), "abc");
}

TEST(UndoFletcher32Test, TakesTheChunkIfItsSumFits) {
  // The sums of the words "ab", "cd" and "e\0", folded.
  const auto chunk = undo_fletcher32(as_bytes("abcde\xC7\x29\xF0\x4F"));
  ASSERT_TRUE(chunk) << chunk.error().message();
  EXPECT_EQ(text_of(*chunk), "abcde");
  EXPECT_FALSE(undo_fletcher32(as_bytes("abcdf\xC7\x29\xF0\x4F")));
  EXPECT_FALSE(undo_fletcher32(as_bytes("abcde\xC7\x29\xF0\x4E")));
  // As HDF5 1.6.2 wrote it.
  EXPECT_TRUE(undo_fletcher32(as_bytes("abcde\x29\xC7\x4F\xF0")));
  EXPECT_FALSE(undo_fletcher32(as_bytes("abc")));
}

}  // namespace
}  // namespace leat
