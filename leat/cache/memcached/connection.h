// One memcached server, as one thread sees it.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "leat/base/clock.h"
#include "leat/base/result.h"
#include "leat/cache/memcached/operation.h"
#include "leat/cache/memcached/pipeline.h"
#include "leat/cache/memcached/server_name.h"
#include "leat/cache/memcached/slabs.h"
#include "leat/runtime/retry_policy.h"
#include "leat/store/http/poller.h"
#include "leat/store/http/resolver.h"

namespace leat {

/// How to talk to servers.
struct PeerSettings {
  /// A server that sends nothing for this long while it owes an answer is
  /// avoided for a while.
  Nanoseconds patience = std::chrono::milliseconds(100);
  /// How long a value is kept that nobody asks for.
  std::chrono::seconds ttl{3600};
  /// Seals values; a value with another seal counts as wrong.
  PeerKey key{};
};

/// The events that a connection reports to its owner, on its own
/// thread.
struct ConnectionEvents {
  /// Requests the server's addresses; the answer comes through resolved().
  std::function<void()> resolve;
  /// The server is up and may hold this many bytes.
  std::function<void(std::uint64_t limit_bytes)> is_up;
  std::function<void()> is_down;
};

/// Talks to a server over one socket, and knows whether it is alive.
///
/// It connects on its own and asks for the server's settings; it is up once
/// they have come, since even a stopped server accepts connections. Operations
/// wait for the first time that it is up. When it fails (nothing comes for
/// `patience`, an operation is overdue, the socket breaks, the reply is not
/// memcached's), all outstanding operations are answered kUnreachable, and so
/// are new ones while it is down: nobody waits for a dead server twice. It
/// reconnects after a back-off with jitter.
///
/// Threads: one. `poller` must outlive it.
class Connection {
 public:
  Connection(ServerName server, PeerSettings settings, Poller& poller,
             ConnectionEvents events);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Sends the operation, or answers it kUnreachable immediately.
  void submit(const PeerOperationRef& operation);
  void resolved(const Result<HostAnswerRef>& answer);
  /// The socket is ready: `events` of epoll.
  void act(std::uint32_t events);
  /// Does what is due. Call it after all events have been handled, so that an
  /// answer that has arrived never counts as late.
  void check_time();
  /// The latest time at which to call check_time().
  std::optional<TimePoint> wakes_at() const;

  int fd() const { return fd_; }
  const ServerName& server() const { return server_; }

 private:
  enum class State : std::uint8_t {
    kResting,  // Until retry_at_.
    kResolving,
    kConnecting,
    kAsking,  // For its settings.
    kUp,
  };
  static constexpr std::size_t kReadBytes = 256 << 10;

  void begin();
  void connect_to(const HostAddress& address);
  void ask_what_it_is();
  void warn_of_evictions();
  void is_up();
  bool is_spoken_to() const {
    return state_ == State::kAsking || state_ == State::kUp;
  }
  std::optional<TimePoint> fails_at() const;
  void write();
  void read();
  void ask_about_refusal(std::size_t item_bytes);
  void fail(std::string_view why);
  void say_why_down();
  void watch();

  const ServerName server_;
  const PeerSettings settings_;
  const SteadyClock clock_;
  Poller& poller_;
  const ConnectionEvents events_;

  State state_ = State::kResting;
  int fd_ = -1;
  TimePoint retry_at_;       // In kResting.
  TimePoint last_progress_;  // Otherwise: since when an answer is owed.
  RetryPolicy backoff_;
  std::uint32_t failures_ = 0;  // In a row.
  std::string unsaid_;  ///< Why it is down, until an operation meets that.
  bool was_up_ = false;
  std::size_t next_address_ = 0;

  PeerPipeline pipeline_;
  std::deque<PeerOperationRef> later_;  // Ordered by `begins`.
  std::vector<std::byte> inbox_;
  std::uint64_t limit_bytes_ = 0;
  TimePoint ask_slabs_at_;
  bool has_complained_ = false;
};

}  // namespace leat
