#include "leat/serve/request_parser.h"

#include <gtest/gtest.h>

#include <boost/asio/buffer.hpp>
#include <string>

namespace leat {
namespace {

using boost::beast::http::error;

struct Heard final : RequestEvents {
  void on_head() override { ++heads; }
  void on_body(std::span<const std::byte> piece) override {
    body += as_text(piece);
  }
  int heads = 0;
  std::string body;
};

/// The outcome of a call: how much of `text` was taken, and why no more.
struct Put {
  std::size_t taken = 0;
  boost::beast::error_code failure;
};
Put put(RequestParser& parser, std::string_view text) {
  Put done;
  done.taken =
      parser.put(boost::asio::buffer(text.data(), text.size()), done.failure);
  return done;
}

TEST(RequestParserTest, KeepsTheHeadApartFromTheBytesItCameIn) {
  Heard heard;
  RequestParser parser(heard);
  std::string text =
      "PUT /k?a=b HTTP/1.1\r\nHost: x\r\nX-Empty:\r\nContent-Length: 4\r\n\r\n";

  EXPECT_EQ(put(parser, text).taken, text.size());
  text.assign(text.size(), '#');
  (void)put(parser, "body");

  EXPECT_EQ(heard.heads, 1);
  EXPECT_EQ(heard.body, "body");
  EXPECT_TRUE(parser.is_done());
  EXPECT_EQ(parser.head().method, "PUT");
  EXPECT_EQ(parser.head().target, "/k?a=b");
  ASSERT_EQ(parser.head().headers.size(), 3u);
  EXPECT_EQ(parser.head().header("host"), "x");
  EXPECT_EQ(parser.head().headers[1].first, "X-Empty");
  EXPECT_EQ(parser.head().headers[1].second, "");
}

// Beast limits what it has not yet taken, so a head of which little is left
// over each time could be of any size.
TEST(RequestParserTest, EndsAHeadThatComesLineByLine) {
  Heard heard;
  RequestParser parser(heard);
  const std::string line = "a: " + std::string(59, 'b') + "\r\n";
  ASSERT_EQ(put(parser, "GET / HTTP/1.1\r\na").failure, error::need_more);

  std::size_t lines = 0;
  Put last;
  while (lines < 10'000) {
    last = put(parser, line + "a");  // This tells the parser that the line has
                                     // ended.
    if (last.failure != error::need_more) break;
    ASSERT_EQ(last.taken, line.size());
    ++lines;
  }

  EXPECT_EQ(last.failure, error::header_limit);
  EXPECT_LE(lines * line.size(), RequestParser::kMostHeadBytes);
  EXPECT_EQ(heard.heads, 0);
}

}  // namespace
}  // namespace leat
