// A TCP connection, with TLS if requested, that never blocks.
#pragma once
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "leat/base/owned_fd.h"
#include "leat/base/result.h"
#include "leat/store/http/resolver.h"
#include "leat/store/http/tls_client.h"

namespace leat {

enum class IoStatus {
  kDone,       ///< Some bytes were moved, or the step is complete.
  kWantRead,   ///< Waits until the socket is readable,
  kWantWrite,  ///< or writable.
  kEnd,        ///< The server has closed it.
  kFailed,     ///< It is broken: error() says why.
};

struct IoOutcome {
  IoStatus status = IoStatus::kDone;
  std::size_t bytes = 0;
};

/// Threads: one, which has SIGPIPE blocked: OpenSSL writes without
/// MSG_NOSIGNAL.
class Stream {
 public:
  Stream() = default;

  /// Begins to connect. Writable once that has succeeded or failed.
  ///
  /// Errors:
  ///   kResourceExhausted  no file descriptor is left
  ///   kUnavailable        there is no way to the address
  static Result<Stream> open(const HostAddress& address, std::uint16_t port);

  int fd() const { return socket_.get(); }
  /// Tells whether it has connected. Call this once the socket is writable.
  Result<void> connected() const;

  /// Uses TLS from here on; call handshake() until it is done.
  Result<void> secure(const TlsClient& tls, const std::string& host,
                      bool host_is_address);
  IoOutcome handshake();

  IoOutcome write(std::string_view bytes);
  IoOutcome read(std::span<std::byte> into);
  /// True if it is open and nothing has come that was not read.
  bool is_quiet();
  /// False after a read() that took everything, as far as one can tell without
  /// asking the kernel.
  bool may_have_more() const { return may_have_more_; }

  /// Why the last step was kFailed.
  Error error() const;

 private:
  IoOutcome plain_outcome(ssize_t moved, IoStatus wanted);
  IoOutcome tls_outcome(int returned);

  OwnedFd socket_;
  SslSession tls_;  // Destroyed before the socket.
  bool may_have_more_ = false;
  int errno_ = 0;  // The errno of the last failure.
};

}  // namespace leat
