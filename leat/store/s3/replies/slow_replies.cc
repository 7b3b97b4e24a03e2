// Replies that stop or trickle, judged by deadlines of their own: 1.5 s for a
// first byte, then 614 bytes in each 600 ms (in each 1.5 s, 1,536 bytes, of
// requests that are not reads).
#include <chrono>

#include "leat/store/s3/replies/odd_replies.h"

namespace leat::testing {
namespace {

using enum ErrorCode;
using std::chrono::milliseconds;

/// A piece after a piece, with pauses.
ServerReply slowly(std::string raw, std::string piece, milliseconds pause,
                   std::size_t times,
                   ServerEnding ending = ServerEnding::kStall) {
  return {
      .ending = ending,
      .raw = std::move(raw),
      .steps = {{.bytes = std::move(piece), .pause = pause, .times = times}}};
}

std::string head_of_50000() {
  return head_206(
      "Content-Length: 50000\r\nContent-Range: bytes 36-50035/100000\r\n");
}

/// A read of 50,000 bytes, so that it is not over before it is judged.
OddReply large(std::string name, ServerReply reply, Outcome outcome = {}) {
  return {.name = std::move(name),
          .reply = std::move(reply),
          .outcome = std::move(outcome),
          .offset = 36,
          .size_bytes = 50'000};
}

constexpr std::size_t kEndless = ServerStep::kEndless;
// libcurl tells of a head line by line.
const Outcome kNoByte =
    fails(kDeadlineExceeded, "no byte of a reply came within");
const Outcome kTooSlow = fails(kDeadlineExceeded, "too slow");

std::vector<OddReply> reads() {
  const std::string period = object_bytes(0, 36);
  std::string bytes_of_2500;
  for (int i = 0; i < 70; ++i) bytes_of_2500 += period;
  bytes_of_2500.resize(2520);
  ServerReply pause = {
      .raw = good_head() + "56789",
      .steps = {{.bytes = "abcde", .pause = milliseconds(150)}}};
  ServerReply late = {.raw = "",
                      .steps = {{.bytes = good_head() + kGoodBody,
                                 .pause = milliseconds(400)}}};
  ServerReply dries_up = {
      .ending = ServerEnding::kStall,
      .raw = head_of_50000() + object_bytes(0, 30'000),
      .steps = {{.bytes = "x", .pause = milliseconds(20), .times = kEndless}}};
  return {
      {"slow: no byte",
       {.steps = {{.bytes = "H", .pause = milliseconds(5000)}}},
       fails(kDeadlineExceeded, "no byte of a reply came within")},
      {"slow: the first byte after 400 ms", late},
      {"slow: one byte and no more", slowly("H", "", milliseconds(5000), 1),
       kTooSlow, kNoByte},
      {"slow: the head by 50 bytes a second",
       slowly("HTTP/1.1 206 X\r\nX: ", "x", milliseconds(20), kEndless),
       kTooSlow},
      {"slow: headers by 100 bytes a second",
       slowly("HTTP/1.1 206 X\r\n", "X: y\r\n", milliseconds(60), kEndless),
       kTooSlow},
      {"slow: interim replies by 300 bytes a second",
       slowly("", "HTTP/1.1 100 X\r\n\r\n", milliseconds(60), kEndless),
       kTooSlow},
      {"slow: no body", slowly(good_head(), "", milliseconds(5000), 1),
       kTooSlow},
      {"slow: half a body",
       slowly(good_head() + "56789", "", milliseconds(5000), 1), kTooSlow},
      {"slow: a pause of 150 ms in the body", pause},
      large("slow: a large body by 50 bytes a second",
            slowly(head_of_50000(), "x", milliseconds(20), kEndless), kTooSlow),
      large("slow: a large body that dries up", dries_up, kTooSlow),
      large("slow: a large body by 60 KB a second",
            {.raw = head_of_50000(),
             .steps = {{.bytes = bytes_of_2500,
                        .pause = milliseconds(40),
                        .times = 19},
                       {.bytes = object_bytes(19 * 2520, 50'000 - 19 * 2520),
                        .pause = milliseconds(40)}}}),
      {"slow: chunks of a byte by 100 bytes a second",
       slowly(head_206("Transfer-Encoding: chunked\r\n"
                       "Content-Range: bytes 5-14/20\r\n"),
              "0001;x\r\nx\r\n", milliseconds(100), kEndless),
       kTooSlow},
      {"slow: the end of chunks does not come",
       slowly(head_206("Transfer-Encoding: chunked\r\n"
                       "Content-Range: bytes 5-14/20\r\n") +
                  "a\r\n56789abcde\r\n",
              "", milliseconds(5000), 1),
       kTooSlow},
      {"slow: a trailer by 50 bytes a second",
       slowly(head_206("Transfer-Encoding: chunked\r\n"
                       "Content-Range: bytes 5-14/20\r\n") +
                  "a\r\n56789abcde\r\n0\r\nX: ",
              "x", milliseconds(20), kEndless),
       kTooSlow},
      {"slow: a body without length that never ends",
       slowly(head_206("Content-Range: bytes 5-14/20\r\n") + kGoodBody, "",
              milliseconds(5000), 1),
       kTooSlow},
      {"slow: the body of an error",
       slowly("HTTP/1.1 404 X\r\nContent-Length: 100\r\n\r\n<Err", "x",
              milliseconds(50), kEndless),
       kTooSlow},
  };
}

std::vector<OddReply> other_slow_ones() {
  const std::string head = "HTTP/1.1 200 X\r\n";
  return {
      {"slow: a listing without a byte",
       {.steps = {{.bytes = "H", .pause = milliseconds(5000)}}},
       fails(kDeadlineExceeded, "no byte of a reply came within"),
       {},
       Ask::kList},
      {"slow: a listing that stops",
       slowly(head + "Content-Length: 100\r\n\r\n<List", "", milliseconds(5000),
              1),
       kTooSlow,
       {},
       Ask::kList},
      {"slow: a listing of blanks, 50 a second",
       slowly(head + "Transfer-Encoding: chunked\r\n\r\n", "1\r\n \r\n",
              milliseconds(20), kEndless),
       kTooSlow,
       {},
       Ask::kList},
      {"slow: a HEAD without an answer",
       {.steps = {{.bytes = "H", .pause = milliseconds(5000)}}},
       fails(kDeadlineExceeded, "no byte of a reply came within"),
       {},
       Ask::kStat},
      {"slow: a write that is not answered",
       {.steps = {{.bytes = "H", .pause = milliseconds(5000)}}},
       fails(kDeadlineExceeded, "no byte of a reply came within"),
       {},
       Ask::kWrite},
  };
}

}  // namespace

std::vector<OddReply> slow_replies() {
  std::vector<OddReply> all = reads();
  for (OddReply& row : other_slow_ones()) all.push_back(std::move(row));
  for (OddReply& row : all) row.is_timed = true;
  return all;
}

}  // namespace leat::testing
