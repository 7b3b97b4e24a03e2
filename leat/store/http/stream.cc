#include "leat/store/http/stream.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <utility>

#include "leat/base/errors.h"

namespace leat {
namespace {

sockaddr_storage with_port(sockaddr_storage address, std::uint16_t port) {
  if (address.ss_family == AF_INET6) {
    reinterpret_cast<sockaddr_in6&>(address).sin6_port = htons(port);
  } else {
    reinterpret_cast<sockaddr_in&>(address).sin_port = htons(port);
  }
  return address;
}

Error broken(int number) {
  return unavailable("{}; the connection broke", std::strerror(number));
}

Error unreachable(int number) {
  return unavailable(
      "{}; check that the server runs and that host and port are right",
      std::strerror(number));
}

int as_int(std::size_t bytes) {
  return static_cast<int>(std::min<std::size_t>(bytes, INT_MAX));
}

}  // namespace

Result<Stream> Stream::open(const HostAddress& address, std::uint16_t port) {
  Stream stream;
  stream.socket_ = OwnedFd(::socket(address.address.ss_family,
                                    SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
                                    IPPROTO_TCP));
  if (!stream.socket_ && (errno == EMFILE || errno == ENFILE)) {
    return exhausted(
        "no file descriptor is left for a connection; raise the limit (ulimit "
        "-n) or lower max_in_flight");
  }
  if (!stream.socket_) return unreachable(errno);
  const int on = 1;
  setsockopt(stream.fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  const sockaddr_storage to = with_port(address.address, port);
  if (connect(stream.fd(), reinterpret_cast<const sockaddr*>(&to),
              address.size_bytes) != 0 &&
      errno != EINPROGRESS) {
    return unreachable(errno);
  }
  return stream;
}

Result<void> Stream::connected() const {
  int number = 0;
  socklen_t size = sizeof number;
  getsockopt(fd(), SOL_SOCKET, SO_ERROR, &number, &size);
  if (number != 0) return unreachable(number);
  return {};
}

Result<void> Stream::secure(const TlsClient& tls, const std::string& host,
                            bool host_is_address) {
  LEAT_TRY(tls_, tls.start(fd(), host, host_is_address));
  return {};
}

IoOutcome Stream::plain_outcome(ssize_t moved, IoStatus wanted) {
  if (moved > 0) return {.bytes = static_cast<std::size_t>(moved)};
  if (moved == 0) return {.status = IoStatus::kEnd};
  if (errno == EAGAIN || errno == EINTR) return {.status = wanted};
  errno_ = errno;
  return {.status = IoStatus::kFailed};
}

IoOutcome Stream::tls_outcome(int returned) {
  if (returned > 0) return {.bytes = static_cast<std::size_t>(returned)};
  switch (SSL_get_error(tls_.get(), returned)) {
    case SSL_ERROR_WANT_READ:
      return {.status = IoStatus::kWantRead};
    case SSL_ERROR_WANT_WRITE:
      return {.status = IoStatus::kWantWrite};
    case SSL_ERROR_ZERO_RETURN:
      return {.status = IoStatus::kEnd};
    default:
      errno_ = errno;
      return {.status = IoStatus::kFailed};
  }
}

IoOutcome Stream::handshake() {
  ERR_clear_error();
  errno = 0;
  return tls_outcome(SSL_do_handshake(tls_.get()));
}

IoOutcome Stream::write(std::string_view bytes) {
  if (tls_ == nullptr) {
    return plain_outcome(::send(fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
                         IoStatus::kWantWrite);
  }
  ERR_clear_error();
  errno = 0;
  return tls_outcome(SSL_write(tls_.get(), bytes.data(), as_int(bytes.size())));
}

IoOutcome Stream::read(std::span<std::byte> into) {
  if (tls_ == nullptr) {
    const IoOutcome outcome = plain_outcome(
        ::recv(fd(), into.data(), into.size(), 0), IoStatus::kWantRead);
    may_have_more_ = outcome.bytes == into.size();
    return outcome;
  }
  ERR_clear_error();
  errno = 0;
  may_have_more_ = true;  // At most one record comes at a time.
  return tls_outcome(SSL_read(tls_.get(), into.data(), as_int(into.size())));
}

bool Stream::is_quiet() {
  char byte = 0;
  errno = 0;
  if (tls_ == nullptr) {
    return ::recv(fd(), &byte, 1, MSG_PEEK) < 0 && errno == EAGAIN;
  }
  ERR_clear_error();
  // Looks past what TLS itself has to say, such as a session's ticket.
  const IoOutcome outcome = tls_outcome(SSL_peek(tls_.get(), &byte, 1));
  return outcome.status == IoStatus::kWantRead;
}

Error Stream::error() const {
  return tls_ != nullptr ? tls_failure(*tls_, errno_) : broken(errno_);
}

}  // namespace leat
