// epoll, with as few system calls as keep-alive permits.
#pragma once
#include <sys/epoll.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "leat/base/clock.h"

namespace leat {

/// Waits until one of many sockets is ready.
///
/// libcurl stops watching a connection after each reply and watches it again
/// for the next request. Done directly, that is two system calls a request. So
/// an adopted socket that is no longer watched stays registered, and is removed
/// only if it has an event.
///
/// Threads: one.
class Poller {
 public:
  /// REQUIRES: the process may open one more file, else is_open() is false.
  Poller();
  ~Poller();
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;

  bool is_open() const { return epoll_ >= 0; }

  /// Promises that forget() will be called before `fd` is closed; only such a
  /// socket may stay registered unwatched.
  void adopt(int fd);
  /// `fd` is about to be closed.
  void forget(int fd);

  /// Reports these events (EPOLLIN | EPOLLOUT) of `fd` from now on; 0 for none.
  void watch(int fd, std::uint32_t events);

  /// Waits for events, at most until `deadline`. The result is valid until the
  /// next call.
  std::span<const epoll_event> wait(std::optional<TimePoint> deadline);

 private:
  struct Socket {
    std::uint32_t wanted = 0;
    std::uint32_t registered = 0;
    bool is_adopted = false;
  };

  static constexpr std::size_t kMostEvents = 256;

  Socket& at(int fd);
  void unregister(int fd, Socket& socket);

  int epoll_;
  std::vector<Socket> sockets_;  // By file descriptor.
  std::array<epoll_event, kMostEvents> events_{};
};

}  // namespace leat
