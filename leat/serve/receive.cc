#include "leat/serve/receive.h"

#include <sys/socket.h>
#include <time.h>

#include <cstring>

namespace leat {
namespace {

/// If an arrival seems longer ago than this, somebody has set the clock.
constexpr Nanoseconds kMostAge = std::chrono::seconds(1);

Nanoseconds since_epoch(const timespec& time) {
  return std::chrono::seconds(time.tv_sec) + Nanoseconds(time.tv_nsec);
}

/// When the kernel saw the last of the bytes, or now if it did not say.
TimePoint arrival_of(msghdr& message) {
  Nanoseconds age(0);
  for (cmsghdr* note = CMSG_FIRSTHDR(&message); note != nullptr;
       note = CMSG_NXTHDR(&message, note)) {
    if (note->cmsg_level != SOL_SOCKET || note->cmsg_type != SCM_TIMESTAMPNS) {
      continue;
    }
    timespec arrival;
    std::memcpy(&arrival, CMSG_DATA(note), sizeof arrival);
    timespec now;
    ::clock_gettime(CLOCK_REALTIME, &now);  // The clock that arrivals are in.
    age = since_epoch(now) - since_epoch(arrival);
  }
  if (age < Nanoseconds(0) || age > kMostAge) age = Nanoseconds(0);
  // Read after the other clock: interrupted in between, a delay becomes longer
  // and not shorter.
  return SteadyClock().now() - age;
}

}  // namespace

void note_arrivals(int socket) {
  const int yes = 1;
  (void)::setsockopt(socket, SOL_SOCKET, SO_TIMESTAMPNS, &yes, sizeof yes);
}

Received receive(int socket, std::span<char> into) {
  alignas(cmsghdr) char notes[256];
  iovec place{.iov_base = into.data(), .iov_len = into.size()};
  msghdr message{};
  message.msg_iov = &place;
  message.msg_iovlen = 1;
  message.msg_control = notes;
  message.msg_controllen = sizeof notes;
  Received received;
  received.bytes = ::recvmsg(socket, &message, MSG_DONTWAIT);
  if (received.bytes > 0) received.at = arrival_of(message);
  return received;
}

}  // namespace leat
