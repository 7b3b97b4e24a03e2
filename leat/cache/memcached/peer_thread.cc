#include "leat/cache/memcached/peer_thread.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "leat/runtime/start_thread.h"
#include "leat/runtime/thread_name.h"

namespace leat {

struct PeerThread::Inbox {
  using Task = std::function<void()>;

  Inbox() : wake_fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  ~Inbox() {
    if (wake_fd >= 0) ::close(wake_fd);
  }
  Inbox(const Inbox&) = delete;
  Inbox& operator=(const Inbox&) = delete;

  /// Once closed, returns false and drops `task`.
  bool post(Task task) {
    const MutexLock lock(mutex);
    if (is_closed) return false;
    tasks.push_back(std::move(task));
    // A failed write means that the descriptor is already readable.
    if (tasks.size() == 1) (void)!eventfd_write(wake_fd, 1);
    return true;
  }
  /// Empty, for good, once closed and taken.
  std::vector<Task> take() {
    eventfd_t ignored = 0;
    (void)eventfd_read(wake_fd, &ignored);
    const MutexLock lock(mutex);
    return std::exchange(tasks, {});
  }
  void close() {
    const MutexLock lock(mutex);
    is_closed = true;
    (void)!eventfd_write(wake_fd, 1);
  }
  bool is_open() {
    const MutexLock lock(mutex);
    return !is_closed;
  }

  const int wake_fd;
  Mutex mutex;
  std::vector<Task> tasks LEAT_GUARDED_BY(mutex);
  bool is_closed LEAT_GUARDED_BY(mutex) = false;
};

PeerThread::PeerThread(const std::vector<ServerName>& servers,
                       PeerSettings settings, Resolver& resolver,
                       const Events& events)
    : resolver_(resolver), inbox_(std::make_shared<Inbox>()) {
  connections_.reserve(servers.size());
  for (std::size_t i = 0; i < servers.size(); ++i) {
    connections_.push_back(std::make_unique<Connection>(
        servers[i], settings, poller_, events_of(i, events)));
  }
  if (!is_usable()) return;
  poller_.watch(inbox_->wake_fd, EPOLLIN);
  thread_ = start_thread([this] { run(); });
}

PeerThread::~PeerThread() { inbox_->close(); }

bool PeerThread::is_usable() const {
  return poller_.is_open() && inbox_->wake_fd >= 0;
}

ConnectionEvents PeerThread::events_of(std::size_t server,
                                       const Events& events) {
  ConnectionEvents made;
  made.resolve = [this, server] {
    Connection* const connection = connections_[server].get();
    // Goes through the inbox, which may be closed by then; while it is open,
    // the connection exists.
    resolver_.resolve(connection->server().host, [inbox = inbox_, connection](
                                                     const auto& answer) {
      inbox->post([connection, answer] { connection->resolved(answer); });
    });
  };
  made.is_up = [server, is_up = events.is_up](std::uint64_t limit_bytes) {
    is_up(server, limit_bytes);
  };
  made.is_down = [server, is_down = events.is_down] { is_down(server); };
  return made;
}

void PeerThread::submit(std::size_t server, const PeerOperationRef& operation) {
  Connection* const connection = connections_[server].get();
  const bool is_taken = inbox_->post([connection, operation] {  //
    connection->submit(operation);
  });
  if (is_taken) return;
  refuse(operation);
}

void PeerThread::run() {
  name_this_thread("leat-peers");
  while (inbox_->is_open()) {
    for (const auto& connection : connections_) connection->check_time();
    hear(poller_.wait(next_wake()));
    for (const auto& task : inbox_->take()) task();
  }
  for (const auto& task : inbox_->take()) task();
  connections_.clear();  // Answers the operations that are owed an answer.
}

void PeerThread::hear(std::span<const epoll_event> happened) {
  by_fd_.clear();
  for (const auto& connection : connections_) {
    if (connection->fd() >= 0) by_fd_[connection->fd()] = connection.get();
  }
  for (const epoll_event& event : happened) {
    const auto found = by_fd_.find(event.data.fd);
    if (found != by_fd_.end()) found->second->act(event.events);
  }
}

std::optional<TimePoint> PeerThread::next_wake() const {
  std::optional<TimePoint> wake;
  for (const auto& connection : connections_) {
    const auto at = connection->wakes_at();
    if (at && (!wake || *at < *wake)) wake = at;
  }
  return wake;
}

}  // namespace leat
