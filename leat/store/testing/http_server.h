// A small HTTP server that can misbehave, for tests of HTTP clients.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "leat/base/clock.h"
#include "leat/base/mutex.h"

namespace leat::testing {

struct ServerRequest {
  std::string method;
  std::string target;                          ///< As sent: "/a%20b?x=y".
  std::map<std::string, std::string> headers;  ///< Names in lower case.
  std::string body;
  std::size_t nth = 0;  ///< Counts all requests of the server, from 0.
  std::string address;  ///< This machine's address, as the client knows it.

  /// Empty if there is none of this (lower-case) name.
  std::string header(const std::string& name) const;
};

/// How the server ends a reply.
enum class ServerEnding {
  kWhole,   ///< As it should be; the connection is kept.
  kClosed,  ///< Whole, and then the connection is closed.
  kCut,     ///< Closed after `sent_bytes` of the body that was promised.
  kReset,   ///< Reset after `sent_bytes` of the body; no reply at all if 0.
  kStall,   ///< Silent after `sent_bytes` of the body, until the server stops.
};

/// A piece of a reply, sent as it is.
struct ServerStep {
  static constexpr std::size_t kEndless = ~std::size_t{0};

  std::string bytes;
  Nanoseconds pause{0};  ///< Before each time that it is sent.
  std::size_t times = 1;
};

struct ServerReply {
  int status = 200;
  std::vector<std::pair<std::string, std::string>> headers{};
  std::string body{};
  ServerEnding ending = ServerEnding::kWhole;
  std::size_t sent_bytes = 0;
  Nanoseconds delay{0};  ///< Before the first byte.
  bool tells_length = true;
  /// Sent as it is, instead of all that, in pieces of `raw_piece_bytes`; then
  /// the connection is closed unless `ending` is kWhole.
  std::string raw{};
  std::size_t raw_piece_bytes = 1 << 20;
  /// Sent after `raw`, also in the place of all that.
  std::vector<ServerStep> steps{};
};

/// Serves `address` at a free port, a thread for each connection.
///
/// Threads:  any; `answer` is called by many at once.
/// Lifetime: destruction closes all connections and joins.
class ScriptedServer {
 public:
  using Answer = std::function<ServerReply(const ServerRequest&)>;

  explicit ScriptedServer(Answer answer, const char* address = "127.0.0.1");
  ~ScriptedServer();
  ScriptedServer(const ScriptedServer&) = delete;
  ScriptedServer& operator=(const ScriptedServer&) = delete;

  std::uint16_t port() const { return port_; }
  /// "http://127.0.0.1:PORT" and `target`.
  std::string url(std::string_view target = "") const;
  /// Connections accepted so far, and those that are open now.
  std::size_t connections() const { return connections_; }
  std::size_t open_connections() const;
  std::size_t requests() const { return requests_; }

 private:
  void accept_all();
  void serve(int socket);
  bool reply_to(int socket, const ServerRequest& request);
  /// True if the connection goes on.
  bool end_as(ServerEnding ending, int socket);
  bool send_steps(int socket, const ServerReply& reply);
  /// True if it has come.
  bool wait_for_the_end(Nanoseconds at_most);

  const Answer answer_;
  int listener_ = -1;
  std::uint16_t port_ = 0;
  std::atomic<std::size_t> connections_ = 0;
  std::atomic<std::size_t> requests_ = 0;

  mutable Mutex mutex_;
  CondVar stopped_;
  bool is_stopped_ LEAT_GUARDED_BY(mutex_) = false;
  std::list<int> sockets_ LEAT_GUARDED_BY(mutex_);
  std::list<std::jthread> threads_ LEAT_GUARDED_BY(mutex_);
  std::jthread acceptor_;
};

/// The answers of a well-behaved server of these objects: GET with one range
/// and If-Match, HEAD. The key is the percent-decoded path without its first
/// slash.
ScriptedServer::Answer serve_objects(
    std::map<std::string, std::string> objects);

}  // namespace leat::testing
