// Replies to requests that are not reads: listings, HEAD, writes.
#include <fmt/format.h>

#include "leat/store/s3/replies/odd_replies.h"

namespace leat::testing {
namespace {

using enum ErrorCode;

std::string odd_object(std::string_view key) {
  return fmt::format("<Contents><Key>{}</Key><Size>1</Size></Contents>", key);
}

std::string odd_listing(std::string_view inside) {
  return fmt::format("<ListBucketResult>{}</ListBucketResult>", inside);
}

std::string truncated(std::string_view inside, std::string_view token) {
  return odd_listing(
      fmt::format("<IsTruncated>true</IsTruncated>"
                  "<NextContinuationToken>{}</NextContinuationToken>"
                  "{}",
                  token, inside));
}

/// `outcome.says` of a success are the keys, each with a blank behind it.
OddReply list(std::string name, std::string body, Outcome outcome) {
  return {.name = "list: " + std::move(name),
          .reply = {.body = std::move(body)},
          .outcome = std::move(outcome),
          .ask = Ask::kList};
}

Outcome keys(std::string all) { return {.says = std::move(all)}; }

std::vector<OddReply> lists() {
  OddReply endless = list("empty pages without end", "",
                          fails(kCorrupt, "pages in a row hold nothing"));
  endless.answer = [](const ServerRequest& request) -> ServerReply {
    return {.body = truncated("", std::to_string(request.nth))};
  };
  OddReply few_empty = list("three empty pages, then keys", "", keys("p/a "));
  few_empty.answer = [](const ServerRequest& request) -> ServerReply {
    if (request.nth == 3) return {.body = odd_listing(odd_object("p/a"))};
    return {.body = truncated("", std::to_string(request.nth))};
  };
  const Outcome corrupt = fails(kCorrupt, "is not S3's");
  return {
      list("in order", odd_listing(odd_object("p/a") + odd_object("p/b")),
           keys("p/a p/b ")),
      list("in no order", odd_listing(odd_object("p/b") + odd_object("p/a")),
           keys("p/a p/b ")),
      list("nothing", odd_listing(""), keys("")),
      list("a key twice", odd_listing(odd_object("p/a") + odd_object("p/a")),
           fails(kCorrupt, "twice")),
      list("a key twice, apart",
           odd_listing(odd_object("p/a") + odd_object("p/b") +
                       odd_object("p/a")),
           fails(kCorrupt, "twice")),
      list("a key outside the prefix", odd_listing(odd_object("q/a")),
           fails(kCorrupt, "prefix")),
      list("more, and no way to it", truncated(odd_object("p/a"), ""),
           fails(kCorrupt, "token")),
      list("a page that leads to itself", truncated("", "t"),
           fails(kCorrupt, "leads to itself")),
      endless,
      few_empty,
      list("a size below zero",
           odd_listing("<Contents><Key>p/a</Key><Size>-1</Size></Contents>"),
           fails(kCorrupt, "size")),
      list("no XML", "hello", corrupt),
      list("HTML", "<html><body>Welcome</body></html>", corrupt),
      list("an empty body", "", corrupt),
      list("cut XML", "<ListBucketResult><Contents>", corrupt),
      list("an <Error>", "<Error><Code>InternalError</Code></Error>",
           fails(kUnavailable, "InternalError")),
      list("an <Error>: SlowDown", "<Error><Code>SlowDown</Code></Error>",
           fails(kThrottled, "SlowDown")),
      list("10 MB", std::string(10'000'000, ' '),
           fails(kResourceExhausted, "more than")),
      {.name = "list: without end",
       .reply = {.raw = "HTTP/1.1 200 X\r\n\r\n",
                 .steps = {{.bytes = std::string(65536, ' '),
                            .times = ServerStep::kEndless}}},
       .outcome = fails(kResourceExhausted, "more than"),
       .ask = Ask::kList},
      {.name = "list: cut",
       .reply = {.body = odd_listing(odd_object("p/a")),
                 .ending = ServerEnding::kCut,
                 .sent_bytes = 20},
       .outcome = fails(kUnavailable, "after 20 bytes"),
       .ask = Ask::kList},
  };
}

std::vector<OddReply> others() {
  const auto stat = [](std::string name, std::string raw, Outcome outcome) {
    return OddReply{.name = "stat: " + std::move(name),
                    .reply = {.raw = std::move(raw)},
                    .outcome = std::move(outcome),
                    .ask = Ask::kStat};
  };
  const auto write = [](std::string name, ServerReply reply, Outcome outcome) {
    return OddReply{.name = "write: " + std::move(name),
                    .reply = std::move(reply),
                    .outcome = std::move(outcome),
                    .ask = Ask::kWrite};
  };
  return {
      stat("a size", "HTTP/1.1 200 X\r\nContent-Length: 7\r\n\r\n",
           {.says = "7"}),
      stat("no size", "HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n",
           fails(kUnavailable, "no size")),
      stat("a size beyond any number",
           "HTTP/1.1 200 X\r\nContent-Length: 99999999999999999999\r\n\r\n",
           fails(kUnavailable, "")),
      stat("nothing there", "HTTP/1.1 404 X\r\nContent-Length: 9\r\n\r\n",
           fails(kNotFound, "no object")),
      stat("throttled", "HTTP/1.1 503 X\r\nContent-Length: 9\r\n\r\n",
           fails(kThrottled, "fewer requests")),
      write("taken", {.headers = {{"ETag", "\"e\""}}}, {.says = "\"e\""}),
      write("an <Error> as a success",
            {.body = "<Error><Code>InternalError</Code></Error>"},
            fails(kUnavailable, "InternalError")),
      write("throttled", {.status = 503}, fails(kThrottled, "")),
      write("closed without an answer", {.ending = ServerEnding::kReset},
            fails(kUnavailable, "")),
      write("refused with a body without end",
            {.raw = "HTTP/1.1 403 X\r\n\r\n",
             .steps = {{.bytes = std::string(8192, 'x'),
                        .times = ServerStep::kEndless}}},
            fails(kPermissionDenied, "HTTP 403")),
  };
}

}  // namespace

std::vector<OddReply> odd_lists() {
  std::vector<OddReply> all = lists();
  for (OddReply& row : others()) all.push_back(std::move(row));
  return all;
}

}  // namespace leat::testing
