// HTTP/1.1 requests, many in parallel.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
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
  /// How often the same was sent before: a later try waits longer for a slow
  /// server.
  std::uint32_t attempt = 0;
  /// A 200 whose body does not fill `into` exactly is not an error, but a reply
  /// with HttpReply::misfit: the body may say why.
  bool takes_misfits = false;
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
  /// Empty if the body went to HttpRequest::into; the first 64 KiB of a body
  /// that is not a success, or a misfit.
  std::string body{};
  /// Since the request began; 0 if nothing was sent.
  Nanoseconds until_first_byte{0};
  Nanoseconds until_last_byte{0};
  /// See HttpRequest::takes_misfits; `into` holds nothing of use.
  std::optional<Error> misfit{};
  /// The values of the headers that were sent, which no message may show; empty
  /// if the body is a range in HttpRequest::into.
  std::vector<std::string> sent_values{};

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
  /// The longest wait for the first byte of a reply, and for the server to take
  /// some of a body.
  std::chrono::milliseconds stall_timeout{30'000};
  /// The wait for the first byte of a read once 100 replies are known is 10
  /// times that of the slowest of a hundred, but at least this and at most
  /// `stall_timeout`.
  std::chrono::milliseconds least_first_byte_timeout{3'000};
  /// From its first byte on, a reply to a read must bring
  /// `least_bytes_a_second` over this span, and any other reply over
  /// `stall_timeout`. Both this and the wait for a read's first byte double
  /// with each attempt.
  std::chrono::milliseconds progress_window{2'000};
  std::size_t least_bytes_a_second = 1024;
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
/// Does not retry, follow redirects or decompress. A request is sent once; only
/// if the server closed a kept connection before the first byte of a reply is
/// it sent again, on a new one. Names are resolved on a separate thread,
/// answers are kept for 30 s, and longer while the resolver fails, which the
/// log says once. Connections spread over the addresses; one that refuses or
/// stalls is avoided for a while. TLS is verified.
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
  ///   kDeadlineExceeded  no connection, no first byte or too few bytes in time
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
