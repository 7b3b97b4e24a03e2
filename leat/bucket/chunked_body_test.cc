#include "leat/bucket/chunked_body.h"

#include <gtest/gtest.h>

#include "leat/base/buffer.h"

namespace leat {
namespace {

struct Decoded {
  bool is_good = true;
  bool is_whole = false;
  std::string bytes;
};

Decoded decode(std::string_view text, std::size_t piece_bytes) {
  Decoded decoded;
  ChunkedBody body([&](std::span<const std::byte> bytes) {
    decoded.bytes += as_text(bytes);
  });
  for (std::size_t at = 0; at < text.size(); at += piece_bytes) {
    decoded.is_good = body.put(as_bytes(text.substr(at, piece_bytes)));
  }
  decoded.is_whole = body.is_whole();
  EXPECT_EQ(body.size_bytes(), decoded.bytes.size());
  return decoded;
}

TEST(ChunkedBodyTest, TakesTheFramingOffHoweverItIsCut) {
  const std::string signature(64, 'a');
  const std::string text = "5;chunk-signature=" + signature +
                           "\r\nhello\r\nA\r\n, chunked!\r\n0\r\n"
                           "x-amz-checksum-crc32:AAAAAA==\r\n\r\n";
  for (std::size_t piece = 1; piece <= text.size(); ++piece) {
    const Decoded decoded = decode(text, piece);

    EXPECT_TRUE(decoded.is_good);
    EXPECT_TRUE(decoded.is_whole);
    EXPECT_EQ(decoded.bytes, "hello, chunked!");
  }
}

TEST(ChunkedBodyTest, AnEmptyBodyIsWhole) {
  EXPECT_TRUE(decode("0\r\n\r\n", 1).is_whole);
}

TEST(ChunkedBodyTest, IsNotWholeWhenCutAnywhereBeforeTheLastChunk) {
  const std::string text = "5\r\nhello\r\n3\r\nyou\r\n0\r\n";
  for (std::size_t size = 0; size < text.size(); ++size) {
    EXPECT_FALSE(decode(text.substr(0, size), 1).is_whole) << size;
  }
}

TEST(ChunkedBodyTest, RefusesWhatBreaksTheFraming) {
  for (const std::string& text :
       {std::string("hello"), std::string("\r\n"), std::string("g\r\n"),
        std::string("-1\r\n"), std::string("5\nhello"),
        std::string("5\r\nhelloX\r\n"), std::string("11111111111111111\r\n"),
        std::string(5000, '1')}) {
    const Decoded decoded = decode(text + "\r\n0\r\n\r\n", 1);
    EXPECT_FALSE(decoded.is_good) << text;
    EXPECT_FALSE(decoded.is_whole) << text;
  }
}

}  // namespace
}  // namespace leat
