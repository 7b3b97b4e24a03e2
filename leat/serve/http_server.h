// An HTTP/1.1 server around an HttpService.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "leat/base/clock.h"
#include "leat/base/result.h"
#include "leat/serve/http_service.h"
#include "leat/serve/tls_identity.h"

namespace leat {

struct HttpServerOptions {
  std::string host = "127.0.0.1";  ///< An address of this machine.
  std::uint16_t port = 0;          ///< 0 lets the system choose.
  std::size_t threads = 1;
  std::string thread_name = "leat-serve";
  /// If set, the server speaks TLS and nothing else.
  std::optional<TlsIdentity> tls;
  /// Rates of what replies send; 0 for as fast as can be.
  std::uint64_t connection_bytes_per_second = 0;
  std::uint64_t total_bytes_per_second = 0;
  /// How long a client may take from connecting, or from the first byte of a
  /// request, to the end of the request's head; how long it may be silent
  /// within a body, or stay after its last reply. Then it is closed, at most
  /// half as much later. Between requests it may take its time.
  Nanoseconds patience = std::chrono::seconds(60);
  /// A connection more closes the one that has been silent for longest; 0 for
  /// any number.
  std::size_t most_connections = 0;
};

/// Accepts connections and lets `service` answer what they ask.
///
/// Speaks HTTP/1.1 with keep-alive and pipelining, and gives no connection more
/// than one request at a time. Delays and rates are those of Reply and the
/// options. Knows no S3, no paths, no authentication: those are the service's.
///
/// Threads:  any. The service is called on the server's own threads.
/// Lifetime: destruction refuses new requests, gives those in flight half a
///           second, closes every connection and joins.
class HttpServer {
 public:
  virtual ~HttpServer() = default;

  /// The port it listens on.
  virtual std::uint16_t port() const = 0;
  /// Connections open now, and accepted in all.
  virtual std::uint64_t open_connections() const = 0;
  virtual std::uint64_t accepted_connections() const = 0;
};

/// Binds, listens and starts the threads.
///
/// Errors:
///   kInvalidArgument   `host` is not an address, no threads, no patience, a
///                      bad TLS identity
///   kUnavailable       the address is taken or not of this machine
Result<std::unique_ptr<HttpServer>> open_http_server(
    const HttpServerOptions& options, HttpService& service);

}  // namespace leat
