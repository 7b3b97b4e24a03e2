// Through a server: delays, rates, files and endings as a client sees them.
#include "leat/serve/reply_sender.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "leat/serve/testing/raw_http.h"

namespace leat {
namespace {

using std::chrono::milliseconds;
using testing::FakeService;
using testing::RawClient;
using testing::serve;

TEST(ReplySenderTest, HoldsTheFirstByteBackAsLongAsAsked) {
  FakeService service([](const std::string&) {
    Reply reply;
    reply.delay = milliseconds(60);
    return reply;
  });
  const auto server = serve(service);
  RawClient client(server->port());
  const TimePoint start = SteadyClock().now();

  client.send("GET / HTTP/1.1\r\n\r\n");
  (void)client.read_until("\r\n\r\n");

  EXPECT_GE(SteadyClock().now() - start, milliseconds(60));
}

Reply ending_with(Ending ending) {
  Reply reply;
  reply.body = "12345678";
  reply.ending = ending;
  return reply;
}

TEST(ReplySenderTest, CutsABodyInHalf) {
  FakeService service([](auto&) { return ending_with(Ending::kTruncate); });
  const auto server = serve(service);
  RawClient client(server->port());

  client.send("GET / HTTP/1.1\r\n\r\n");

  const std::string reply = client.read_all();
  EXPECT_TRUE(reply.ends_with("\r\n\r\n1234")) << reply;
  EXPECT_NE(reply.find("Content-Length: 8\r\n"), std::string::npos);
  EXPECT_FALSE(client.timed_out);
}

TEST(ReplySenderTest, ResetsAConnection) {
  FakeService service([](auto&) { return ending_with(Ending::kReset); });
  const auto server = serve(service);
  RawClient client(server->port());

  client.send("GET / HTTP/1.1\r\n\r\n");

  EXPECT_EQ(client.read_all(), "");
  EXPECT_TRUE(client.was_reset);
}

TEST(ReplySenderTest, StallsInTheMiddleOfABody) {
  FakeService service([](auto&) { return ending_with(Ending::kStall); });
  const auto server = serve(service);
  RawClient client(server->port());

  client.send("GET / HTTP/1.1\r\n\r\n");

  EXPECT_TRUE(client.read_until("1234").ends_with("\r\n\r\n1234"));
  std::string more;
  EXPECT_FALSE(client.read_some(more, milliseconds(100)));
  EXPECT_TRUE(client.timed_out);
}

std::string temporary_file(std::size_t size) {
  std::string path = ::testing::TempDir() + "reply_sender_test_file";
  const OpenFile file(::open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600));
  std::string bytes(size, '\0');
  for (std::size_t i = 0; i < size; ++i) bytes[i] = char(i * 7 + (i >> 12));
  EXPECT_EQ(::write(file.descriptor(), bytes.data(), size), ssize_t(size));
  return path;
}

TEST(ReplySenderTest, SendsARangeOfALargeFile) {
  constexpr std::size_t kSize = 3 << 20;
  constexpr std::size_t kOffset = 12'345;
  const auto file = std::make_shared<OpenFile>(
      ::open(temporary_file(kSize).c_str(), O_RDONLY));
  FakeService service([&](auto&) {
    Reply reply;
    reply.file = FileRange{file, kOffset, kSize - kOffset};
    return reply;
  });
  const auto server = serve(service);
  RawClient client(server->port());

  client.send("GET / HTTP/1.1\r\nConnection: close\r\n\r\n");

  const std::string reply = client.read_all();
  const std::size_t body = reply.find("\r\n\r\n") + 4;
  ASSERT_EQ(reply.size() - body, kSize - kOffset);
  for (std::size_t i = kOffset; i < kSize; ++i) {
    ASSERT_EQ(reply[body + i - kOffset], char(i * 7 + (i >> 12))) << i;
  }
}

TEST(ReplySenderTest, FlipsOneBitOfAFileOrABody) {
  constexpr std::size_t kSize = 1 << 20;
  const auto file = std::make_shared<OpenFile>(
      ::open(temporary_file(kSize).c_str(), O_RDONLY));
  struct Case {
    bool is_file;
    std::size_t size;
    std::size_t flipped;
  };
  for (const Case& now : {Case{true, kSize, kSize / 2}, Case{true, kSize, 0},
                          Case{true, kSize, kSize - 1}, Case{true, 1000, 500},
                          Case{false, 1000, 999}}) {
    FakeService service([&](auto&) {
      Reply reply;
      reply.flipped_byte = now.flipped;
      if (now.is_file) {
        reply.file = FileRange{file, 0, now.size};
        return reply;
      }
      for (std::size_t i = 0; i < now.size; ++i) {
        reply.body += char(i * 7 + (i >> 12));
      }
      return reply;
    });
    const auto server = serve(service);
    RawClient client(server->port());

    client.send("GET / HTTP/1.1\r\nConnection: close\r\n\r\n");

    const std::string reply = client.read_all();
    const std::size_t body = reply.find("\r\n\r\n") + 4;
    ASSERT_EQ(reply.size() - body, now.size);
    for (std::size_t i = 0; i < now.size; ++i) {
      const char sent = char(i * 7 + (i >> 12));
      ASSERT_EQ(reply[body + i], i == now.flipped ? char(sent ^ 1) : sent) << i;
    }
  }
}

TEST(ReplySenderTest, KeepsToTheRateOfAConnection) {
  FakeService service([](auto&) {
    Reply reply;
    reply.body = std::string(200'000, 'x');
    return reply;
  });
  HttpServerOptions options;
  options.connection_bytes_per_second = 1'000'000;
  const auto server = serve(service, options);
  // A busy machine may hold up one or the other, not each.
  Nanoseconds least = std::chrono::hours(1);
  for (int i = 0; i < 8 && least > milliseconds(600); ++i) {
    RawClient client(server->port());
    const TimePoint start = SteadyClock().now();
    client.send("GET / HTTP/1.1\r\nConnection: close\r\n\r\n");
    (void)client.read_all();
    least = std::min<Nanoseconds>(least, SteadyClock().now() - start);
  }

  EXPECT_GE(least, milliseconds(190));
  EXPECT_LE(least, milliseconds(600));
}

/// Answers with `size` bytes of the file at `path`, after `delay`.
FakeService::Answer file_answer(const std::string& path, std::size_t size,
                                milliseconds delay) {
  const auto file =
      std::make_shared<OpenFile>(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  return [file, size, delay](const std::string& what) {
    Reply reply;
    if (what != "GET /file") return reply;
    reply.file = FileRange{file, 0, size};
    reply.delay = delay;
    return reply;
  };
}

TEST(ReplySenderTest, ReadsASmallFileBeforeTheReplyIsDue) {
  const std::string path = temporary_file(100);
  FakeService service(file_answer(path, 100, milliseconds(300)));
  const auto server = serve(service);
  RawClient client(server->port());
  RawClient other(server->port());

  client.send("GET /file HTTP/1.1\r\nConnection: close\r\n\r\n");
  while (service.alive == 0) std::this_thread::yield();
  other.send("GET / HTTP/1.1\r\n\r\n");
  (void)other.read_until("\r\n\r\n");  // The thread has left the first one.
  ASSERT_EQ(::truncate(path.c_str(), 0), 0);

  EXPECT_EQ(client.read_all().size(),
            std::string_view("HTTP/1.1 200 OK\r\nContent-Length: "
                             "100\r\nConnection: close\r\n\r\n")
                    .size() +
                100);
}

TEST(ReplySenderTest, EndsTheConnectionWhereAFileHasBeenCut) {
  const std::string path = temporary_file(10);
  // Read while the reply waits, read when it is due, sent from the file.
  for (const std::size_t promised : {100u, 20'000u, 1'000'000u}) {
    FakeService service(file_answer(path, promised, milliseconds(5)));
    const auto server = serve(service);
    RawClient client(server->port());

    client.send("GET /file HTTP/1.1\r\n\r\n");

    EXPECT_LT(client.read_all().size(), promised);
    EXPECT_FALSE(client.timed_out) << promised;
  }
}

// By sendfile(), which cannot be told to send no signal.
TEST(ReplySenderTest, OutlivesAClientThatLeavesBeforeItsFile) {
  constexpr std::size_t kSize = 3 << 20;
  FakeService service(
      file_answer(temporary_file(kSize), kSize, milliseconds(20)));
  const auto server = serve(service);
  for (const char* target : {"/file", "/"}) {
    RawClient client(server->port());
    client.send("GET " + std::string(target) + " HTTP/1.1\r\n\r\n");
    if (target == std::string_view("/")) {
      EXPECT_TRUE(client.read_until("\r\n\r\n").starts_with("HTTP/1.1 200"));
    }
  }

  while (server->open_connections() != 0) std::this_thread::yield();
  EXPECT_LT(service.sent_bytes, kSize);
}

}  // namespace
}  // namespace leat
