// Odd and hostile replies, a table of them (odd_*.cc), against the real client
// over the loopback, once over our own connections and once over libcurl's.
//
// After each reply to a read, the same client reads again, from a server that
// behaves: whatever came before, those bytes must be right.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <set>
#include <span>
#include <thread>

#include "leat/store/http/http_store.h"
#include "leat/store/s3/aws/sigv4.h"
#include "leat/store/s3/replies/odd_replies.h"
#include "leat/store/s3/s3_store.h"

namespace leat::testing {

std::string object_bytes(std::uint64_t offset, std::size_t size_bytes) {
  std::string bytes(size_bytes, '\0');
  for (std::size_t i = 0; i < size_bytes; ++i) {
    const std::uint64_t at = (offset + i) % 36;
    bytes[i] = static_cast<char>(at < 10 ? '0' + at : 'a' + (at - 10));
  }
  return bytes;
}

std::string head_206(std::string_view lines) {
  return fmt::format("HTTP/1.1 206 Partial Content\r\n{}\r\n", lines);
}

std::string good_head(std::string_view more_lines) {
  return head_206(
      fmt::format("Content-Length: 10\r\nContent-Range: bytes 5-14/100000\r\n"
                  "ETag: \"v1\"\r\n{}",
                  more_lines));
}

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

enum class Carrier { kDirect, kLibcurl };

constexpr std::size_t kThreads = 12;
constexpr seconds kMostTime{15};

const Credentials kRowKeys{"AKIDROWS", "SECRETACCESSKEYROWS",
                           "FwoGZXIvYXdzEBYaDSESSIONTOKEN/ROWS+123=="};

HttpClientOptions options_for(const OddReply& row) {
  HttpClientOptions options;
  options.io_threads = 1;
  options.progress_window = options.stall_timeout;
  if (row.is_timed) {
    options.stall_timeout = milliseconds(1500);
    options.progress_window = milliseconds(600);
  }
  return options;
}

std::unique_ptr<Store> store_for(const OddReply& row,
                                 const ScriptedServer& server) {
  auto http = open_http_client(options_for(row), nullptr);
  if (row.ask == Ask::kHttpRead) {
    return *open_http_store(server.url("/ds"), std::move(http));
  }
  S3Settings settings;
  settings.host = fmt::format("127.0.0.1:{}", server.port());
  settings.base_path = "/ds";
  settings.base_url = server.url("/ds");
  settings.region = "us-east-1";
  settings.credentials = kRowKeys;
  return open_s3_store("ds", std::move(settings), std::move(http), [] {
    return AmzDate::parse("20240229T120000Z")->time();
  });
}

ServerReply good_reply(const OddReply& row) {
  return {.status = 206,
          .headers = {{"Content-Range",
                       fmt::format("bytes {}-{}/100000", row.offset,
                                   row.offset + row.size_bytes - 1)}},
          .body = object_bytes(row.offset, row.size_bytes)};
}

Result<std::string> read(Store& store, const OddReply& row) {
  std::string bytes(row.size_bytes, '#');
  LEAT_TRY_VOID(read_range(
      store,
      {.object = {.key = "k", .etag = row.etag},
       .offset = row.offset,
       .into = std::as_writable_bytes(std::span(bytes.data(), bytes.size()))},
      {}));
  return bytes;
}

/// The result of the row's request: for a read, the bytes.
Result<std::string> ask(Store& store, const OddReply& row) {
  std::string said;
  switch (row.ask) {
    case Ask::kRead:
    case Ask::kHttpRead:
      return read(store, row);
    case Ask::kList: {
      LEAT_TRY(const ListPage page, store.list({.prefix = "p/",
                                                .start_after = {},
                                                .resume = {},
                                                .delimiter = {}},
                                               {}));
      for (const ObjectInfo& object : page.objects) said += object.key + ' ';
      return said;
    }
    case Ask::kStat: {
      LEAT_TRY(const ObjectInfo info, store.stat("k", {}));
      return std::to_string(info.size_bytes);
    }
    case Ask::kWrite: {
      LEAT_TRY(const ObjectInfo info, store.write("k", as_bytes("bytes"), {}));
      return info.etag;
    }
  }
  return said;
}

bool is_read(const OddReply& row) {
  return row.ask == Ask::kRead || row.ask == Ask::kHttpRead;
}

/// Empty if the message of an error is fit to be shown.
std::string flaw_of(std::string_view message) {
  for (const std::string_view secret :
       {std::string_view(kRowKeys.secret_access_key),
        std::string_view(kRowKeys.session_token),
        std::string_view("Signature=")}) {
    if (message.find(secret) != std::string_view::npos) {
      return "the message shows a secret";
    }
  }
  if (std::ranges::any_of(message,
                          [](char c) {
                            return static_cast<unsigned char>(c) < 0x20 ||
                                   c == 0x7f;
                          }) ||
      message.find("\xc2\x9b") != std::string_view::npos) {
    return "the message has control characters";
  }
  return message.size() > 1500 ? "the message is too long" : "";
}

/// Empty if `got` is the outcome; else what is wrong.
std::string flaw_of(const Result<std::string>& got, const Outcome& wanted,
                    const OddReply& row) {
  if (got && wanted.code) return "succeeded with '" + got->substr(0, 80) + "'";
  if (got) {
    const std::string right =
        is_read(row) ? object_bytes(row.offset, row.size_bytes) : wanted.says;
    return *got == right ? "" : "wrong: '" + got->substr(0, 80) + "'";
  }
  const Error& error = got.error();
  if (const std::string flaw = flaw_of(error.message()); !flaw.empty()) {
    return flaw + ": " + error.message();
  }
  if (wanted.code == error.code() &&
      error.message().find(wanted.says) != std::string::npos) {
    return "";
  }
  return fmt::format("{}: {}", to_string(error.code()), error.message());
}

std::string flaw_of(const OddReply& row, Carrier carrier) {
  const ScriptedServer server([&row](const ServerRequest& request) {
    if (is_read(row) && request.nth != 0) return good_reply(row);
    return row.answer ? row.answer(request) : row.reply;
  });
  const auto store = store_for(row, server);
  const auto began = std::chrono::steady_clock::now();
  const Result<std::string> got = ask(*store, row);
  const auto took = std::chrono::steady_clock::now() - began;
  const bool is_by_libcurl = carrier == Carrier::kLibcurl && row.by_libcurl;
  std::string flaw =
      flaw_of(got, is_by_libcurl ? *row.by_libcurl : row.outcome, row);
  if (took > kMostTime) flaw += " (and took too long)";
  if (!flaw.empty() || !is_read(row)) return flaw;
  std::this_thread::sleep_for(row.rest);
  flaw = flaw_of(read(*store, row), kRight, row);
  return flaw.empty() ? "" : "the next read: " + flaw;
}

std::vector<OddReply> all_rows() {
  std::vector<OddReply> all;
  for (auto rows : {odd_heads(), odd_bodies(), odd_chunks(), odd_ranges(),
                    odd_errors(), odd_lists(), slow_replies()}) {
    std::ranges::move(rows, std::back_inserter(all));
  }
  return all;
}

void expect_outcomes(Carrier carrier) {
  const std::vector<OddReply> rows = all_rows();
  std::vector<std::string> flaws(rows.size());
  std::atomic<std::size_t> next = 0;
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (std::size_t at = next++; at < rows.size(); at = next++) {
        flaws[at] = flaw_of(rows[at], carrier);
      }
    });
  }
  threads.clear();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(flaws[i], "") << rows[i].name;
  }
}

TEST(RepliesTest, HasManyRowsEachOfItsOwn) {
  std::set<std::string> names;
  for (const OddReply& row : all_rows()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name << " is there twice";
  }
  EXPECT_GE(names.size(), 250u);
}

TEST(RepliesTest, EachHasItsOutcomeOverOurConnections) {
  expect_outcomes(Carrier::kDirect);
}

TEST(RepliesTest, EachHasItsOutcomeOverLibcurl) {
  // libcurl carries all where there is a proxy, even if not for any host.
  setenv("http_proxy", "http://127.0.0.1:1", 1);
  setenv("no_proxy", "*", 1);
  expect_outcomes(Carrier::kLibcurl);
  unsetenv("http_proxy");
  unsetenv("no_proxy");
}

}  // namespace
}  // namespace leat::testing
