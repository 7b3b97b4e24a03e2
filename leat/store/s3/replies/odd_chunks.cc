// Bodies in chunks.
#include "leat/store/s3/replies/odd_replies.h"

namespace leat::testing {
namespace {

using enum ErrorCode;

const std::string kHead = head_206(
    "Transfer-Encoding: chunked\r\nContent-Range: bytes 5-14/100000\r\n"
    "ETag: \"v1\"\r\n");

ServerReply chunks(std::string_view body) {
  return {.raw = kHead + std::string(body)};
}

ServerReply cut(std::string_view body) {
  return {.ending = ServerEnding::kClosed, .raw = kHead + std::string(body)};
}

ServerReply endless(std::string_view before, std::string bytes) {
  return {
      .raw = kHead + std::string(before),
      .steps = {{.bytes = std::move(bytes), .times = ServerStep::kEndless}}};
}

}  // namespace

std::vector<OddReply> odd_chunks() {
  std::string single;
  for (const char c : kGoodBody) single += std::string("1\r\n") + c + "\r\n";
  const Outcome broken = fails(kUnavailable, "");
  // libcurl silently drops what follows a chunk's size, so only
  // the clock tells.
  const Outcome late = fails(kDeadlineExceeded, "too slow");
  std::vector<OddReply> all = {
      {"chunks: one", chunks("a\r\n56789abcde\r\n0\r\n\r\n")},
      {"chunks: two", chunks("4\r\n5678\r\n6\r\n9abcde\r\n0\r\n\r\n")},
      {"chunks: of one byte", chunks(single + "0\r\n\r\n")},
      {"chunks: size in capitals", chunks("A\r\n56789abcde\r\n0\r\n\r\n")},
      {"chunks: size with zeros", chunks("000a\r\n56789abcde\r\n0\r\n\r\n")},
      {"chunks: with an extension",
       chunks("a;name=\"a;b\"\r\n56789abcde\r\n0;last\r\n\r\n")},
      {"chunks: with a trailer",
       chunks("a\r\n56789abcde\r\n0\r\nX-Sum: 1\r\n\r\n")},
      {"chunks: a trailer is no header",
       chunks("a\r\n56789abcde\r\n0\r\nETag: \"v2\"\r\n"
              "Content-Range: bytes 0-9/20\r\n\r\n")},
      {"chunks: byte by byte",
       {.raw = kHead + "4;x=y\r\n5678\r\n6\r\n9abcde\r\n0\r\nT: t\r\n\r\n",
        .raw_piece_bytes = 1}},
      {"chunks: none", chunks("0\r\n\r\n"),
       fails(kUnavailable, "after 0 of 10")},
      {"chunks: too few", chunks("4\r\n5678\r\n0\r\n\r\n"),
       fails(kUnavailable, "after 4 of 10")},
      {"chunks: too many", cut("a\r\n56789abcde\r\n1\r\nf\r\n0\r\n\r\n"),
       fails(kUnavailable, "more came than the 10 bytes")},
      {"chunks: one too long", cut("b\r\n56789abcdef\r\n0\r\n\r\n"),
       fails(kUnavailable, "more came than the 10 bytes")},
      {"chunks: without end",
       endless("", "1000\r\n" + std::string(4096, 'x') + "\r\n"),
       fails(kUnavailable, "more came than the 10 bytes")},
      {"chunks: size that is no number", cut("zz\r\n56789abcde\r\n"), broken},
      {"chunks: size that is missing", cut("\r\n56789abcde\r\n"), broken},
      {"chunks: size below zero", cut("-a\r\n56789abcde\r\n0\r\n\r\n"), broken},
      {"chunks: size of 2^64 - 1", cut("ffffffffffffffff\r\n56789abcde\r\n"),
       broken},
      {"chunks: size of 17 digits",
       cut("1000000000000000a\r\n56789abcde\r\n0\r\n\r\n"), broken},
      {"chunks: no line behind one", cut("a\r\n56789abcdeX0\r\n\r\n"), broken},
      {"chunks: the last is missing", cut("a\r\n56789abcde\r\n"), broken},
      {"chunks: cut within one", cut("a\r\n5678"), broken},
      {"chunks: cut within a size", cut("4\r\n5678\r\n6"), broken},
      {"chunks: an extension without end",
       endless("a;", std::string(4096, 'x')), fails(kUnavailable, "no end"),
       late},
      {"chunks: extensions without end",
       endless("", "1;" + std::string(60'000, 'x') + "\r\n5\r\n"), broken},
      {"chunks: a trailer without end",
       endless("a\r\n56789abcde\r\n0\r\n", "X-More: 1\r\n"),
       fails(kUnavailable, ""), fails(kUnavailable, "more than 65536 bytes")},
      {"chunks: of gzip",
       {.ending = ServerEnding::kClosed,
        .raw = head_206("Transfer-Encoding: gzip\r\n"
                        "Content-Range: bytes 5-14/20\r\n") +
               kGoodBody},
       broken},
  };
  for (OddReply& row : all) row.is_timed = row.by_libcurl.has_value();
  return all;
}

}  // namespace leat::testing
