// A thread that talks to some of the servers.
#pragma once
#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "leat/base/mutex.h"
#include "leat/cache/memcached/connection.h"
#include "leat/store/http/poller.h"
#include "leat/store/http/resolver.h"

namespace leat {

/// Runs connections on epoll.
///
/// Threads: any for submit(). Lifetime: destruction answers all that it has
/// accepted with kUnreachable and
///           joins. `resolver` must outlive it.
class PeerThread {
 public:
  /// Events of the server with this index in `servers`; called on the thread.
  struct Events {
    std::function<void(std::size_t server, std::uint64_t limit_bytes)> is_up;
    std::function<void(std::size_t server)> is_down;
  };

  PeerThread(const std::vector<ServerName>& servers, PeerSettings settings,
             Resolver& resolver, const Events& events);
  ~PeerThread();
  PeerThread(const PeerThread&) = delete;
  PeerThread& operator=(const PeerThread&) = delete;

  /// False if the process has no file descriptors left for it.
  bool is_usable() const;

  /// Passes the operation to the server with this index. Returns immediately.
  void submit(std::size_t server, const PeerOperationRef& operation);

 private:
  /// Messages from other threads; the resolver may keep it alive after the
  /// thread has ended.
  struct Inbox;

  ConnectionEvents events_of(std::size_t server, const Events& events);
  void run();
  void hear(std::span<const epoll_event> happened);
  std::optional<TimePoint> next_wake() const;

  Resolver& resolver_;
  const std::shared_ptr<Inbox> inbox_;

  // Used by the thread alone.
  Poller poller_;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::unordered_map<int, Connection*> by_fd_;

  std::jthread thread_;  // Last: joined before the rest dies.
};

}  // namespace leat
