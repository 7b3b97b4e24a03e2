// TLS as a client: the state shared by all connections of an I/O thread.
#pragma once
#include <memory>
#include <string>
#include <utility>

#include "leat/base/result.h"

// OpenSSL's own names, so that this header needs none of OpenSSL's.
struct ssl_ctx_st;
struct ssl_st;

namespace leat {

struct SslFree {
  void operator()(ssl_ctx_st* context) const;
  void operator()(ssl_st* session) const;
};
using SslContext = std::unique_ptr<ssl_ctx_st, SslFree>;
using SslSession = std::unique_ptr<ssl_st, SslFree>;

/// TLS 1.2 or later. The server's certificate must be signed by an authority of
/// the bundle and name the host that was asked for (RFC 6125).
///
/// Threads: one.
class TlsClient {
 public:
  /// `ca_bundle`: a PEM file; empty for OpenSSL's default places.
  ///
  /// Errors:
  ///   kInvalidArgument    the file cannot be read or holds no certificate
  ///   kResourceExhausted  OpenSSL has no memory
  static Result<TlsClient> open(const std::string& ca_bundle);

  /// TLS over `socket` that verifies `host`, a name or an address.
  Result<SslSession> start(int socket, const std::string& host,
                           bool host_is_address) const;

 private:
  explicit TlsClient(SslContext context) : context_(std::move(context)) {}

  SslContext context_;
};

/// Why a call on `tls` has just failed; `number` is the errno it left.
Error tls_failure(const ssl_st& tls, int number);

}  // namespace leat
