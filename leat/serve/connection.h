// One connection of a server. Internal to serve/: includes asio.
#pragma once
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_set>

#include "leat/base/mutex.h"
#include "leat/serve/event_loop.h"
#include "leat/serve/http_service.h"
#include "leat/serve/rate_limit.h"

namespace leat {

/// A socket bound to one loop; the executor's type is spelled out because the
/// erased one costs an allocation per operation.
using LoopSocket =
    boost::asio::basic_stream_socket<boost::asio::ip::tcp,
                                     boost::asio::io_context::executor_type>;

/// Threads: the loop's.
class ServerConnection {
 public:
  virtual ~ServerConnection() = default;
  /// Closes once no request is being answered.
  virtual void close_when_idle() = 0;
  virtual void close_now() = 0;
  /// Closes if the client owes the rest of something since before `then`.
  virtual void close_if_owing_since(TimePoint then) = 0;
  /// When it last sent something, or connected.
  virtual TimePoint last_heard() const = 0;
};

/// A loop and the connections upon it. Shared with the replies that are still
/// being made on other threads, so that they may come too late.
struct ServerLoop {
  std::unordered_set<ServerConnection*> connections;  // Outlives the loop.
  EventLoop loop;
};

/// State that the connections of a server share and keep alive. The last
/// connection may outlive the server, held by a reply that was made elsewhere.
struct ServerShared {
  explicit ServerShared(HttpService& its_service) : service(its_service) {}

  HttpService& service;
  std::optional<boost::asio::ssl::context> tls;
  std::uint64_t connection_bytes_per_second = 0;
  std::optional<RateLimit> total;
  std::atomic<std::uint64_t> accepted = 0;

  Mutex mutex;
  CondVar changed;
  std::uint64_t open LEAT_GUARDED_BY(mutex) = 0;
};

/// Serves `socket` until either side closes it.
///
/// Threads:  the loop's.
/// Lifetime: the connection keeps itself alive, and `loop` must outlive it.
void start_connection(LoopSocket socket,
                      const std::shared_ptr<ServerLoop>& loop,
                      const std::shared_ptr<ServerShared>& shared);

}  // namespace leat
