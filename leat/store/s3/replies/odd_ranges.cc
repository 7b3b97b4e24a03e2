// Replies that say, or do not say, which bytes of which version they carry.
#include <fmt/format.h>

#include "leat/store/s3/replies/odd_replies.h"

namespace leat::testing {
namespace {

using enum ErrorCode;

const Outcome kOtherRange = fails(kUnavailable, "not the one asked for");

ServerReply ranged(std::string_view content_range,
                   std::string_view etag = "\"v1\"") {
  ServerReply reply{.status = 206, .body = kGoodBody};
  if (!content_range.empty()) {
    reply.headers.emplace_back("Content-Range", content_range);
  }
  if (!etag.empty()) reply.headers.emplace_back("ETag", etag);
  return reply;
}

ServerReply tagged(std::string_view etag) {
  return ranged("bytes 5-14/100000", etag);
}

/// A 200 to a read of `size` bytes from `offset` on.
OddReply whole(std::string name, ServerReply reply, std::uint64_t offset,
               std::size_t size, Outcome outcome) {
  reply.status = 200;
  return {.name = std::move(name),
          .reply = std::move(reply),
          .outcome = std::move(outcome),
          .offset = offset,
          .size_bytes = size};
}

std::vector<OddReply> ranges() {
  std::vector<OddReply> all;
  for (const Ask ask : {Ask::kRead, Ask::kHttpRead}) {
    const std::string by = ask == Ask::kRead ? " (S3)" : " (HTTP)";
    const auto add = [&](std::string name, ServerReply reply,
                         Outcome outcome = {}) {
      all.push_back({.name = "range: " + name + by,
                     .reply = std::move(reply),
                     .outcome = std::move(outcome),
                     .ask = ask});
    };
    add("as asked for", ranged("bytes 5-14/20"));
    add("of unknown total", ranged("bytes 5-14/*"));
    add("not said", ranged(""), fails(kUnavailable, "Content-Range"));
    add("empty",
        {.raw =
             head_206("Content-Length: 10\r\nContent-Range:\r\n") + kGoodBody},
        fails(kUnavailable, "Content-Range"));
    add("one byte early", ranged("bytes 4-13/20"), kOtherRange);
    add("one byte short", ranged("bytes 5-13/20"), kOtherRange);
    add("the same length elsewhere", ranged("bytes 0-9/20"), kOtherRange);
    add("past its own total", ranged("bytes 5-14/10"), kOtherRange);
    add("of another unit", ranged("items 5-14/20"), kOtherRange);
    add("no range", ranged("nonsense"), kOtherRange);
    add("unsatisfied", ranged("bytes */20"), kOtherRange);
    add("beyond any number", ranged("bytes 5-99999999999999999999/20"),
        kOtherRange);
    ServerReply parts = ranged("");
    parts.headers.emplace_back("Content-Type",
                               "Multipart/ByteRanges; boundary=b");
    add("in parts", parts, fails(kUnavailable, "in several parts"));
    parts.headers.emplace_back("Content-Range", "bytes 5-14/20");
    add("in parts, and said to be one", parts,
        fails(kUnavailable, "in several parts"));
    add("the whole object, where a part was asked for",
        {.status = 200, .body = object_bytes(0, 20)},
        fails(kInvalidArgument, "ignores ranges"));
    add("another ten bytes as a 200", {.status = 200, .body = kGoodBody},
        fails(kInvalidArgument, "ignores ranges"));
    add("204", {.status = 204, .tells_length = false},
        fails(kUnavailable, "0 of 10"));
    add("203", {.status = 203, .body = kGoodBody},
        fails(kInvalidArgument, "ignores ranges"));
  }
  return all;
}

std::vector<OddReply> versions() {
  std::vector<OddReply> all;
  for (const Ask ask : {Ask::kRead, Ask::kHttpRead}) {
    const std::string by = ask == Ask::kRead ? " (S3)" : " (HTTP)";
    const auto add = [&](std::string name, ServerReply reply, Outcome outcome,
                         std::string etag = "\"v1\"") {
      all.push_back({.name = "version: " + name + by,
                     .reply = std::move(reply),
                     .outcome = std::move(outcome),
                     .ask = ask,
                     .etag = std::move(etag)});
    };
    const Outcome changed = fails(kCorrupt, "the object changed");
    add("the same", tagged("\"v1\""), kRight);
    add("not said", tagged(""), kRight);
    add("without quotes", tagged("v1"), kRight);
    add("weak and the same", tagged("W/\"v1\""), kRight);
    add("strong, where a weak one is known", tagged("\"v1\""), kRight,
        "W/\"v1\"");
    add("weak and another", tagged("W/\"v2\""), changed);
    add("another", tagged("\"v2\""), changed);
    add("a longer one", tagged("\"v1.\""), changed);
    add("with control characters",
        tagged("\"v1\xc2\x9b"
               "31m\""),
        changed);
  }
  return all;
}

std::vector<OddReply> checksums() {
  // The CRC32C of "0123456789" is 280c069e.
  const std::string right = "KAwGng==";
  const std::string wrong = "KAwGnw==";
  std::vector<OddReply> all;
  const auto add = [&](std::string name, std::string header, std::string value,
                       std::string range, Outcome outcome) {
    all.push_back({.name = "checksum: " + std::move(name),
                   .reply = {.status = 206,
                             .headers = {{"Content-Range", std::move(range)},
                                         {std::move(header), std::move(value)}},
                             .body = object_bytes(0, 10)},
                   .outcome = std::move(outcome),
                   .offset = 0});
  };
  const std::string amz = "x-amz-checksum-crc32c";
  const std::string whole_range = "bytes 0-9/10";
  const Outcome changed = fails(kUnavailable, "the bytes came changed");
  add("right", amz, right, whole_range, kRight);
  add("wrong", amz, wrong, whole_range, changed);
  add("wrong, of more than was read", amz, wrong, "bytes 0-9/20", kRight);
  add("of parts", amz, wrong + "-3", whole_range, kRight);
  add("no base64", amz, "********", whole_range, kRight);
  add("of another length", amz, "Ffmx7kz9nB0=", whole_range, kRight);
  // Those of "0123456789", by other means.
  struct Known {
    std::string header;
    std::string before;
    std::string right;
  };
  for (const Known& known :
       {Known{"x-amz-checksum-crc64nvme", "", "Ffmx7kz9nB0="},
        Known{"x-amz-checksum-crc32", "", "poTHxg=="},
        Known{"x-amz-checksum-sha1", "", "h6zsF82dzSCnFsws9nQXtxyKcBY="},
        Known{"x-amz-checksum-sha256", "",
              "hNiYd/DUBB77a/kaFvAkjy/Vc+avBcGflr7bn4gveII="},
        Known{"x-goog-hash", "md5=", "eB5eJF1ptWaXm4bijSPyxw=="},
        Known{"x-ms-blob-content-md5", "", "eB5eJF1ptWaXm4bijSPyxw=="},
        Known{"content-md5", "", "eB5eJF1ptWaXm4bijSPyxw=="}}) {
    std::string flipped = known.right;
    flipped[0] = flipped[0] == 'A' ? 'B' : 'A';
    add(known.header + ", right", known.header, known.before + known.right,
        whole_range, kRight);
    add(known.header + ", wrong", known.header, known.before + flipped,
        whole_range, changed);
    add(known.header + ", wrong, of more than was read", known.header,
        known.before + flipped, "bytes 0-9/20", kRight);
  }
  add("Google's, right", "x-goog-hash", "md5=x,crc32c=" + right, whole_range,
      kRight);
  add("Google's, wrong", "x-goog-hash", "crc32c=" + wrong + ",md5=x",
      whole_range, changed);
  return all;
}

std::vector<OddReply> wholes() {
  const std::string error =
      "<?xml version=\"1.0\"?><Error><Code>InternalError</Code></Error>";
  const std::string slow_down = "<Error><Code>SlowDown</Code></Error>";
  const auto chunked = [](std::string_view body) -> ServerReply {
    return {.raw = fmt::format("HTTP/1.1 200 X\r\nTransfer-Encoding: chunked"
                               "\r\n\r\n{:x}\r\n{}\r\n0\r\n\r\n",
                               body.size(), body)};
  };
  const Outcome broken = fails(kUnavailable, "InternalError");
  return {
      whole("whole: all that was asked for", {.body = object_bytes(0, 10)}, 0,
            10, kRight),
      whole("whole: more than was asked for", {.body = object_bytes(0, 20)}, 0,
            10, fails(kInvalidArgument, "ignores ranges")),
      whole("whole: less than was asked for", {.body = object_bytes(0, 5)}, 0,
            10, fails(kInvalidArgument, "5 of 10 bytes are there")),
      whole(
          "whole: with another range",
          {.headers = {{"Content-Range", "bytes 5-14/20"}}, .body = kGoodBody},
          0, 10, fails(kUnavailable, "not the one asked for")),
      whole("whole: without end",
            {.raw = "HTTP/1.1 200 X\r\n\r\n",
             .steps = {{.bytes = std::string(4096, 'x'),
                        .times = ServerStep::kEndless}}},
            0, 10, fails(kInvalidArgument, "ignores ranges")),
      whole("whole: an <Error>, shorter", {.body = error}, 0, 1000, broken),
      whole("whole: an <Error>, longer", {.body = error}, 5, 10, broken),
      whole("whole: an <Error> in chunks, shorter", chunked(error), 0, 1000,
            broken),
      whole("whole: an <Error> in chunks, longer", chunked(error), 5, 10,
            broken),
      whole("whole: an <Error> of the very length", {.body = error}, 0,
            error.size(), broken),
      whole("whole: SlowDown", {.body = slow_down}, 5, 10,
            fails(kThrottled, "SlowDown")),
      whole("whole: an <Error> that is cut",
            {.body = error, .ending = ServerEnding::kCut, .sent_bytes = 20}, 0,
            1000, fails(kUnavailable, "")),
  };
}

}  // namespace

std::vector<OddReply> odd_ranges() {
  std::vector<OddReply> all = ranges();
  for (auto rows : {versions(), checksums(), wholes()}) {
    all.insert(all.end(), rows.begin(), rows.end());
  }
  return all;
}

}  // namespace leat::testing
