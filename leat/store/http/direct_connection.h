// One connection of our own, and the GET that it carries. Internal to
// store/http: includes Beast.
#pragma once
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "leat/base/clock.h"
#include "leat/store/http/address_bench.h"
#include "leat/store/http/poller.h"
#include "leat/store/http/reply_reader.h"
#include "leat/store/http/stream.h"
#include "leat/store/http/transfer.h"

namespace leat {

/// The server that a connection leads to. A request to an equal endpoint may
/// reuse the connection.
struct ConnectTarget {
  std::string host;  ///< Without the brackets of an IPv6 address.
  std::uint16_t port = 0;
  bool is_tls = false;
  bool host_is_address = false;
  bool operator==(const ConnectTarget&) const = default;
};

class DirectConnection;

/// Maps sockets to their connections. Threads: one.
class DirectSockets {
 public:
  DirectSockets(Poller& poller, Metrics* metrics)
      : poller_(poller), metrics_(metrics) {}

  void opened(int fd, DirectConnection& connection);
  void closing(int fd);
  void watch(int fd, std::uint32_t events) { poller_.watch(fd, events); }
  /// Null if it is not ours.
  DirectConnection* at(int fd) const;

 private:
  Poller& poller_;
  Metrics* const metrics_;
  std::vector<DirectConnection*> by_fd_;
};

/// The facts needed to open a connection.
struct ConnectPlan {
  ConnectTarget target;
  /// Tried in order; at least one.
  std::vector<HostAddress> addresses;
  const TlsClient* tls = nullptr;  ///< REQUIRES: not null for TLS.
  TimePoint connect_until;
  AddressBench* bench = nullptr;  ///< REQUIRES: not null.
};

/// Connects, sends a request, receives its reply, and is ready for the next.
///
/// Threads: one, which has SIGPIPE blocked.
class DirectConnection {
 public:
  /// Those that it has received whole.
  struct Replies {
    std::size_t count = 0;
    TimePoint last_at;
    Nanoseconds last_took{};
  };

  /// The outcome of a request.
  struct Verdict {
    Result<HttpReply> reply;
    bool can_keep = false;  ///< The connection is ready for another request.
    /// The server had closed a kept connection before it saw the request, which
    /// may be sent again on a new one.
    bool was_stale = false;
  };

  DirectConnection(ConnectPlan plan, DirectSockets& sockets);
  ~DirectConnection();
  DirectConnection(const DirectConnection&) = delete;
  DirectConnection& operator=(const DirectConnection&) = delete;

  /// Sends `head`, when connected. REQUIRES: it carries nothing, and the
  /// transfer's watch is open. This and the next two return nothing while the
  /// request continues.
  std::optional<Verdict> carry(Transfer& transfer, std::string head,
                               TimePoint now);
  /// An event occurred on its socket. REQUIRES: it carries something.
  std::optional<Verdict> step(TimePoint now);
  /// Gives up on a step that takes too long; call it from deadline() on.
  std::optional<Verdict> check(TimePoint now);
  TimePoint deadline() const;

  /// The request being carried; null if idle.
  Transfer* transfer() const { return transfer_; }
  /// Takes the request away. Later results of the connection are meaningless.
  void release() { transfer_ = nullptr; }
  /// False if an idle connection has ended, or something came that nobody asked
  /// for: the next reply could not be told from it.
  bool is_quiet() { return stream_.is_quiet(); }

  /// It has been asked for a second or more, and has never answered anything.
  /// Without TLS alone: a server that has shaken hands attends to it.
  bool starves(TimePoint now) const;
  const Replies& replies() const { return replies_; }
  /// When it was given what it carries.
  TimePoint begun_at() const { return begun_at_; }
  static constexpr std::chrono::seconds kStarvesAfter{1};

  const ConnectTarget& target() const { return plan_.target; }
  bool has_connected() const { return state_ > State::kHandshaking; }
  int family() const { return address().address.ss_family; }
  /// The address that it leads to. REQUIRES: carry() was called.
  const HostAddress& address() const {
    return plan_.addresses[next_address_ - 1];
  }

 private:
  enum class State { kConnecting, kHandshaking, kSending, kReading };
  using Progress = std::optional<Verdict>;

  void close_socket();
  Progress try_next_address(TimePoint now);
  void bench(TimePoint now);
  Progress finish_connect(TimePoint now);
  Progress shake_hands(TimePoint now);
  Progress send_head(TimePoint now);
  Progress receive(TimePoint now);
  Progress ended(ReplyReader::Step step);
  Progress wait_for(IoStatus status);
  Progress over(IoStatus status);
  Progress fail(const Error& error) const;

  ConnectPlan plan_;
  DirectSockets& sockets_;
  Stream stream_;
  State state_ = State::kConnecting;
  std::size_t next_address_ = 0;
  TimePoint attempt_until_;
  Error last_error_;

  Transfer* transfer_ = nullptr;
  std::string head_;
  std::size_t sent_bytes_ = 0;
  TimePoint begun_at_;
  bool is_reused_ = false;
  Replies replies_;
  ReplyReader reader_;
};

}  // namespace leat
