// HTTP/1.1 requests, many in parallel.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "leat/base/clock.h"
#include "leat/base/result.h"
#include "leat/metrics/metrics.h"
#include "leat/store/endpoint_notes.h"

namespace leat {

struct HttpRequest {
  std::string method = "GET";
  /// Already percent-encoded; it is not normalised.
  std::string url{};
  /// "Name: value" each.
  std::vector<std::string> headers{};
  /// Sent as the body. Must live until the reply.
  std::span<const std::byte> body{};
  /// If not empty, the body of a 2xx reply is written here and must fill it
  /// exactly. The body of any other reply goes to HttpReply::body.
  std::span<std::byte> into{};
  /// The most bytes of a body kept in HttpReply::body; a longer one is an error
  /// if the reply is a success, and is otherwise cut off.
  std::size_t most_body_bytes = 16 << 20;
};

/// The headers of a reply. Kept in one string, since a reply has ten headers
/// and few are ever read.
class ReplyHeaders {
 public:
  ReplyHeaders() = default;
  ReplyHeaders(
      std::initializer_list<std::pair<std::string_view, std::string_view>> all);

  /// Neither may hold a line break.
  void add(std::string_view name, std::string_view value);
  void clear() { lines_.clear(); }
  /// The value of the first header with this (lower-case) name; empty if none.
  std::string_view find(std::string_view name) const;

 private:
  std::string lines_;  // "name:value\n" each, names in lower case.
};

struct HttpReply {
  int status = 0;
  ReplyHeaders headers{};
  /// Empty if the body went to HttpRequest::into.
  std::string body{};
  /// Since the request began; 0 if nothing was sent.
  Nanoseconds until_first_byte{0};
  Nanoseconds until_last_byte{0};

  /// See ReplyHeaders::find().
  std::string_view header(std::string_view name) const {
    return headers.find(name);
  }
};

/// Called exactly once. Any HTTP status is a reply, not an error.
using HttpDone = std::function<void(Result<HttpReply>)>;

struct HttpClientOptions {
  std::size_t io_threads = 2;
  /// Requests open at once over all threads; sizes the connection pool. The
  /// caller keeps to it (see layers/limited_store.h); nothing queues here.
  std::size_t max_in_flight = 128;
  std::chrono::milliseconds connect_timeout{10'000};
  /// A transfer that moves no byte for this long fails.
  std::chrono::seconds stall_timeout{30};
  /// A PEM file; empty for the system's.
  std::string ca_bundle{};
  /// False: ignores the environment's http_proxy and its like, for addresses
  /// that only this machine can reach.
  bool may_use_proxy = true;
  /// Notes every reply. May be null.
  std::shared_ptr<EndpointNotes> notes{};
};

/// Sends requests and reads replies on a few threads of its own.
///
/// Does not retry, follow redirects, decompress or log. A request is sent once;
/// only if the server closed a kept connection before the first byte of a reply
/// is it sent again, on a new one. Names are resolved on a separate thread,
/// answers are kept for 30 s, and connections spread over the addresses. TLS is
/// verified.
///
/// Threads:  any. `done` runs on an I/O thread and must not block.
/// Lifetime: destruction cancels what is in flight, runs its `done` with
///           kCancelled, and joins.
class HttpClient {
 public:
  virtual ~HttpClient() = default;

  /// Errors:
  ///   kUnavailable       no connection, reset, name not found for now, a body
  ///                      shorter than it should be
  ///   kDeadlineExceeded  connect or stall timeout
  ///   kPermissionDenied  the server's certificate does not verify
  ///   kCancelled         `stop` fired first
  ///   kInvalidArgument   not a URL, an unknown scheme, a 200 whose body is
  ///                      larger than `into` (the server ignores ranges), or
  ///                      the process was forked after the client was opened
  ///   kResourceExhausted the body is larger than `most_body_bytes`, or no
  ///                      file descriptor is left
  virtual void send(HttpRequest request, std::stop_token stop,
                    HttpDone done) = 0;

  /// Calls send() and waits.
  Result<HttpReply> send_and_wait(HttpRequest request, std::stop_token stop);
};

/// `metrics` may be null, or else outlives the client.
std::unique_ptr<HttpClient> open_http_client(const HttpClientOptions& options,
                                             Metrics* metrics);

}  // namespace leat
