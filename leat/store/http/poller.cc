#include "leat/store/http/poller.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>

namespace leat {
namespace {

int milliseconds_until(std::optional<TimePoint> deadline) {
  if (!deadline) return -1;
  const auto left = *deadline - SteadyClock().now();
  if (left <= Nanoseconds(0)) return 0;
  constexpr std::chrono::milliseconds kMost{60'000};
  // Rounded up: waking too early would only mean to wait again.
  return static_cast<int>(
      std::min(std::chrono::ceil<std::chrono::milliseconds>(left), kMost)
          .count());
}

}  // namespace

Poller::Poller() : epoll_(epoll_create1(EPOLL_CLOEXEC)) {}

Poller::~Poller() {
  if (epoll_ >= 0) close(epoll_);
}

Poller::Socket& Poller::at(int fd) {
  const auto index = static_cast<std::size_t>(fd);
  if (index >= sockets_.size()) sockets_.resize(index + 64);
  return sockets_[index];
}

void Poller::adopt(int fd) { at(fd) = Socket{.is_adopted = true}; }

void Poller::forget(int fd) {
  // Closing takes it out of epoll.
  at(fd) = Socket{};
}

void Poller::unregister(int fd, Socket& socket) {
  if (socket.registered == 0) return;
  epoll_ctl(epoll_, EPOLL_CTL_DEL, fd, nullptr);
  socket.registered = 0;
}

void Poller::watch(int fd, std::uint32_t events) {
  Socket& socket = at(fd);
  socket.wanted = events;
  if (events == 0) {
    if (!socket.is_adopted) unregister(fd, socket);
    return;
  }
  if (socket.registered == events) return;
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  epoll_ctl(epoll_, socket.registered == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, fd,
            &event);
  socket.registered = events;
}

std::span<const epoll_event> Poller::wait(std::optional<TimePoint> deadline) {
  const int count = epoll_wait(epoll_, events_.data(), kMostEvents,
                               milliseconds_until(deadline));
  std::size_t wanted = 0;
  for (int i = 0; i < count; ++i) {
    const int fd = events_[static_cast<std::size_t>(i)].data.fd;
    Socket& socket = at(fd);
    if (socket.wanted == 0) {
      unregister(fd, socket);  // Most likely the server has closed it.
    } else {
      events_[wanted++] = events_[static_cast<std::size_t>(i)];
    }
  }
  return {events_.data(), wanted};
}

}  // namespace leat
