// Heads of replies: status lines, headers, interim replies.
#include "leat/store/s3/replies/odd_replies.h"

namespace leat::testing {
namespace {

using enum ErrorCode;

ServerReply closed(std::string raw) {
  return {.ending = ServerEnding::kClosed,
          .steps = {{.bytes = std::move(raw)}}};
}

std::string repeated(std::string_view text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

const Outcome kNoReply = fails(kUnavailable, "");
const std::string kGoodHead = good_head() + kGoodBody;

std::vector<OddReply> lines() {
  const std::string with_length =
      "Content-Range: bytes 5-14/100000\r\nContent-Length: ";
  const std::string rest = "\r\n\r\n" + kGoodBody;
  const std::string twice = "10\r\nContent-Length: ";
  return {
      {"head: as it should be", {.raw = kGoodHead}},
      {"head: byte by byte", {.raw = kGoodHead, .raw_piece_bytes = 1}},
      {"head: names in capitals",
       {.raw = "HTTP/1.1 206 X\r\nCONTENT-LENGTH: 10\r\n"
               "CONTENT-RANGE: bytes 5-14/20\r\n\r\n" +
               kGoodBody}},
      {"head: no blank after colons",
       {.raw =
            head_206("content-length:10\r\ncontent-range:bytes 5-14/20\r\n") +
            kGoodBody}},
      {"head: blanks and tabs around values",
       {.raw = head_206("Content-Length: \t 10 \t\r\n"
                        "Content-Range:\t bytes 5-14/20 \r\n") +
               kGoodBody}},
      {"head: no reason",
       {.raw = "HTTP/1.1 206 \r\n" + with_length + "10" + rest}},
      {"head: HTTP/1.0",
       closed("HTTP/1.0 206 X\r\n" + with_length + "10" + rest)},
      {"head: HTTP/3.7", closed("HTTP/3.7 206 X\r\n\r\n"), kNoReply},
      {"head: status of two digits", closed("HTTP/1.1 20 X\r\n\r\n"), kNoReply},
      {"head: status that is no number", closed("HTTP/1.1 2x6 X\r\n\r\n"),
       kNoReply},
      {"head: no colon in a line", closed(head_206("Content-Length 10\r\n")),
       kNoReply},
      {"head: a NUL in a value",
       closed(head_206(std::string("X: a\0b\r\n", 8))), kNoReply},
      {"length: negative", closed(head_206("Content-Length: -1\r\n")),
       kNoReply},
      {"length: no number", closed(head_206("Content-Length: ten\r\n")),
       kNoReply},
      {"length: too large for any number",
       closed(head_206("Content-Length: 99999999999999999999999\r\n")),
       kNoReply},
      {"length: hexadecimal", closed(head_206("Content-Length: 0xa\r\n")),
       kNoReply},
      {"length: twice the same",
       {.raw = head_206(with_length + twice + "10\r\n") + kGoodBody}},
      {"length: twice, and not the same",
       closed(head_206(with_length + twice + "11\r\n") + kGoodBody),
       fails(kUnavailable, "")},
      {"length: and chunks",
       closed(head_206(with_length + "10\r\nTransfer-Encoding: chunked\r\n") +
              kGoodBody),
       fails(kUnavailable, "")},
  };
}

std::vector<OddReply> none() {
  return {
      {"none: closed at once", closed(""), fails(kUnavailable, "")},
      {"none: reset at once",
       {.ending = ServerEnding::kReset},
       fails(kUnavailable, "")},
      {"none: closed within the status line", closed("HTTP/1.1 20"), kNoReply},
      {"none: closed within a header", closed("HTTP/1.1 206 X\r\nContent-Le"),
       kNoReply},
      {"none: of SSH", closed("SSH-2.0-OpenSSH_9.2\r\n"), kNoReply},
      {"none: of TLS", closed(std::string("\x15\x03\x01\x00\x02\x02\x50", 7)),
       kNoReply},
      {"none: only text", closed("hello\r\n\r\n"), kNoReply},
      {"none: zeros", closed(std::string(4096, '\0')), kNoReply},
  };
}

std::vector<OddReply> long_ones() {
  using Steps = std::vector<ServerStep>;
  return {
      {"long: a thousand headers",
       {.raw = good_head(repeated("X-More: 1\r\n", 1000)) + kGoodBody}},
      {"long: a header of 60 KB",
       {.raw =
            good_head("X: " + std::string(60'000, 'x') + "\r\n") + kGoodBody}},
      {"long: a header without end",
       {.raw = "HTTP/1.1 206 X\r\nX: ",
        .steps = Steps{{.bytes = std::string(4096, 'x'),
                        .times = ServerStep::kEndless}}},
       fails(kUnavailable, "")},
      {"long: headers without end",
       {.raw = "HTTP/1.1 206 X\r\n",
        .steps = Steps{{.bytes = repeated("X-More: 1\r\n", 100),
                        .times = ServerStep::kEndless}}},
       fails(kUnavailable, "header limit exceeded"),
       fails(kUnavailable, "more than 65536 bytes")},
      {"long: a status line without end",
       {.raw = "HTTP/1.1 206 ",
        .steps = Steps{{.bytes = std::string(4096, 'x'),
                        .times = ServerStep::kEndless}}},
       fails(kUnavailable, "")},
      {"interim: 100 and 103, then the reply",
       {.raw = "HTTP/1.1 100 Continue\r\n\r\n"
               "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" +
               kGoodHead}},
      {"interim: its headers do not count",
       {.raw = "HTTP/1.1 103 X\r\nContent-Range: bytes 0-9/20\r\n"
               "ETag: \"v2\"\r\n\r\n" +
               kGoodHead}},
      {"interim: sixteen",
       {.raw = repeated("HTTP/1.1 100 X\r\n\r\n", 16) + kGoodHead}},
      {"interim: without end",
       {.steps = Steps{{.bytes = "HTTP/1.1 100 X\r\n\r\n",
                        .times = ServerStep::kEndless}}},
       fails(kUnavailable, "interim replies without end")},
      {"interim: and closed", closed("HTTP/1.1 100 Continue\r\n\r\n"),
       kNoReply},
  };
}

}  // namespace

std::vector<OddReply> odd_heads() {
  std::vector<OddReply> all = lines();
  for (auto rows : {none(), long_ones()}) {
    all.insert(all.end(), rows.begin(), rows.end());
  }
  return all;
}

}  // namespace leat::testing
