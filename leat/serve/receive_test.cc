#include "leat/serve/receive.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <string_view>
#include <thread>

#include "leat/serve/open_file.h"

namespace leat {
namespace {

using std::chrono::milliseconds;

/// Both ends of a TCP connection over loopback.
struct Connected {
  Connected() {
    const OpenFile listener(::socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* address = reinterpret_cast<sockaddr*>(&at);
    socklen_t size = sizeof at;
    EXPECT_EQ(::bind(listener.descriptor(), address, size), 0);
    EXPECT_EQ(::listen(listener.descriptor(), 1), 0);
    EXPECT_EQ(::getsockname(listener.descriptor(), address, &size), 0);
    client = OpenFile(::socket(AF_INET, SOCK_STREAM, 0));
    EXPECT_EQ(::connect(client.descriptor(), address, size), 0);
    server = OpenFile(::accept(listener.descriptor(), nullptr, nullptr));
  }

  void send(std::string_view text) {
    EXPECT_EQ(::send(client.descriptor(), text.data(), text.size(), 0),
              ssize_t(text.size()));
  }
  void wait() {
    pollfd ready{.fd = server.descriptor(), .events = POLLIN, .revents = 0};
    EXPECT_EQ(::poll(&ready, 1, 5000), 1);
  }

  OpenFile client;
  OpenFile server;
};

TEST(ReceiveTest, TellsWhenBytesArrivedAndNotWhenTheyWereRead) {
  Connected connected;
  note_arrivals(connected.server.descriptor());
  std::array<char, 16> bytes;
  // The kernel begins to note a moment after the first socket asks.
  TimePoint sent;
  Received received;
  for (int tries = 0; tries < 20; ++tries) {
    connected.send("hello");
    connected.wait();
    sent = SteadyClock().now();
    std::this_thread::sleep_for(milliseconds(30));  // A server that is late.
    received = receive(connected.server.descriptor(), bytes);
    ASSERT_EQ(received.bytes, 5);
    if (received.at < sent + milliseconds(15)) break;
  }

  EXPECT_LT(received.at, sent + milliseconds(15));
  EXPECT_GT(received.at, sent - milliseconds(1000));
}

TEST(ReceiveTest, WithoutNotesItIsWhenTheyWereRead) {
  Connected connected;
  std::array<char, 16> bytes;
  connected.send("hello");
  connected.wait();
  const TimePoint before = SteadyClock().now();

  const Received received = receive(connected.server.descriptor(), bytes);

  EXPECT_EQ(received.bytes, 5);
  EXPECT_GE(received.at, before);
}

TEST(ReceiveTest, DoesNotWait) {
  Connected connected;
  std::array<char, 16> bytes;

  EXPECT_EQ(receive(connected.server.descriptor(), bytes).bytes, -1);
  EXPECT_TRUE(errno == EAGAIN || errno == EWOULDBLOCK);
  connected.client = OpenFile();
  connected.wait();
  EXPECT_EQ(receive(connected.server.descriptor(), bytes).bytes, 0);
}

}  // namespace
}  // namespace leat
