// Bodies: too short, too long, cut, and what follows them.
#include "leat/store/s3/replies/odd_replies.h"

#include <chrono>

namespace leat::testing {
namespace {

using enum ErrorCode;
using std::chrono::milliseconds;

const std::string kGood = good_head() + kGoodBody;
const std::string kNoLength =
    head_206("Content-Range: bytes 5-14/20\r\nConnection: close\r\n");

ServerReply with(std::string raw, ServerEnding ending) {
  return {.ending = ending, .sent_bytes = 1, .raw = std::move(raw)};
}

std::vector<OddReply> cut_ones() {
  return {
      {"body: cut after 4 bytes",
       with(good_head() + "5678", ServerEnding::kCut),
       fails(kUnavailable, "after 4 bytes")},
      {"body: cut before its first byte", with(good_head(), ServerEnding::kCut),
       fails(kUnavailable, "after 0 bytes")},
      {"body: reset after 4 bytes",
       with(good_head() + "5678", ServerEnding::kReset),
       fails(kUnavailable, "")},
      {"body: shorter than its place",
       {.raw = head_206("Content-Length: 4\r\n"
                        "Content-Range: bytes 5-8/100000\r\n") +
               "5678"},
       fails(kUnavailable, "after 4 of 10")},
      {"body: shorter, at the end of the object",
       {.raw = head_206("Content-Length: 4\r\nContent-Range: bytes 5-8/9\r\n") +
               "5678"},
       fails(kInvalidArgument, "past the end")},
      {"body: longer than its place",
       with(head_206("Content-Length: 12\r\nContent-Range: bytes 5-16/20\r\n") +
                "56789abcdefg",
            ServerEnding::kClosed),
       fails(kUnavailable, "more came than the 10 bytes")},
      {"body: of a petabyte",
       with(head_206("Content-Length: 1125899906842624\r\n"
                     "Content-Range: bytes 5-14/20\r\n") +
                kGoodBody,
            ServerEnding::kClosed),
       fails(kUnavailable, "more came than the 10 bytes"),
       fails(kUnavailable, "after 10 bytes")},
      {"body: without length, until the end",
       with(kNoLength + kGoodBody, ServerEnding::kClosed)},
      {"body: without length, too short",
       with(kNoLength + "5678", ServerEnding::kClosed),
       fails(kUnavailable, "after 4 of 10")},
      {"body: without length, reset",
       with(kNoLength + "5678", ServerEnding::kReset), fails(kUnavailable, "")},
      {"body: without length or end",
       {.raw = kNoLength,
        .steps = {{.bytes = std::string(4096, 'x'),
                   .times = ServerStep::kEndless}}},
       fails(kUnavailable, "more came than the 10 bytes")},
      {"body: large, in pieces of 100 bytes",
       {.raw = head_206("Content-Length: 50000\r\n"
                        "Content-Range: bytes 5-50004/100000\r\n") +
               object_bytes(5, 50'000),
        .raw_piece_bytes = 100},
       kRight,
       {},
       Ask::kRead,
       5,
       50'000},
      {"body: large, cut in the middle",
       with(head_206("Content-Length: 50000\r\n"
                     "Content-Range: bytes 5-50004/100000\r\n") +
                object_bytes(5, 20'000),
            ServerEnding::kCut),
       fails(kUnavailable, "after 20000 bytes"),
       {},
       Ask::kRead,
       5,
       50'000},
  };
}

/// A reply to nobody, which looks like the next one.
const std::string kIntruder =
    head_206("Content-Length: 10\r\nContent-Range: bytes 5-14/100000\r\n") +
    "INTRUDER!!";

std::vector<OddReply> followed_ones() {
  return {
      {"after: a byte", {.raw = kGood + "x"}},
      {"after: a line", {.raw = kGood + "\r\n"}},
      {"after: another reply", {.raw = kGood + kIntruder}},
      {.name = "after: another reply 50 ms later",
       .reply = {.raw = kGood,
                 .steps = {{.bytes = kIntruder, .pause = milliseconds(50)}}},
       .rest = milliseconds(200)},
      {.name = "after: a byte 50 ms later",
       .reply = {.raw = kGood,
                 .steps = {{.bytes = "H", .pause = milliseconds(50)}}},
       .rest = milliseconds(200)},
      {"after: the connection is closed without notice",
       with(kGood, ServerEnding::kClosed)},
      {.name = "after: the connection is closed, noticed",
       .reply = with(kGood, ServerEnding::kClosed),
       .rest = milliseconds(50)},
      {"after: the connection is reset", with(kGood, ServerEnding::kReset)},
      {"after: Connection: close, and kept",
       {.raw = good_head("Connection: close\r\n") + kGoodBody}},
  };
}

}  // namespace

std::vector<OddReply> odd_bodies() {
  std::vector<OddReply> all = cut_ones();
  for (OddReply& row : followed_ones()) all.push_back(std::move(row));
  return all;
}

}  // namespace leat::testing
