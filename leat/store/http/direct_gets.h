// GETs and HEADs over connections of our own. Internal to store/http: includes
// Beast.
#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "leat/base/clock.h"
#include "leat/store/http/direct_connection.h"
#include "leat/store/http/http_url.h"
#include "leat/store/http/poller.h"
#include "leat/store/http/transfer.h"

namespace leat {

/// Carries GETs from the socket straight into their destination memory, and
/// HEADs.
///
/// Training from a bucket does little but GETs, and libcurl needs about twice
/// the kernel's time for one: it reads into its own buffer, asks the kernel
/// four times whether it may, and copies. libcurl carries all other methods,
/// and everything that goes through a proxy.
///
/// A connection carries one request at a time, and is kept for later ones. The
/// addresses of a host are used in turn, but for those on the bench; if one
/// refuses or is silent, the next is tried, first one of the other family.
///
/// A server with few threads gives each of them to a connection until that is
/// closed. If new connections starve, idle ones to the same address end; if
/// kept ones were answered meanwhile, no connection is kept for a while.
///
/// Threads: one, which has SIGPIPE blocked.
class DirectGets {
 public:
  using Finish = std::function<void(Transfer&, Result<HttpReply>)>;
  using Resume = std::function<void(Transfer&)>;

  /// `finish` is called once for each request that was started and is not
  /// cancelled, possibly from within. `resume` is called instead for one whose
  /// kept connection proved closed: it is to be given to start().
  DirectGets(const TransferSettings& settings, Poller& poller,
             AddressBench& bench, Finish finish, Resume resume);

  /// True if it can carry the request.
  bool takes(const HttpRequest& request) const;

  /// Starts the request if a kept connection can carry it; else returns false.
  /// Passes by those that lead to an address on the bench, if
  /// Transfer::addresses has another. `url` is that of the request, split.
  bool start_on_kept(Transfer& transfer, const HttpUrl& url);
  /// Starts it on a new connection. REQUIRES: Transfer::addresses is set unless
  /// its host is an address.
  void start(Transfer& transfer, const HttpUrl& url);
  /// Releases the request and its connection; does nothing if none carries it.
  void cancel(const Transfer& transfer);

  /// True if the event was on one of our sockets.
  bool hear(int fd);
  /// Ends what has been silent or idle for too long. Due at next_check().
  void check();
  std::optional<TimePoint> next_check() const { return next_check_; }

 private:
  struct Idle {
    DirectConnection* connection;
    TimePoint since;
  };

  Result<ConnectPlan> plan_for(const Transfer& transfer, ConnectTarget target);
  std::vector<HostAddress> in_turn(const Transfer& transfer,
                                   const ConnectTarget& target);
  void settle(DirectConnection& connection,
              std::optional<DirectConnection::Verdict> verdict);
  void note(const DirectConnection::Verdict& verdict);
  /// True if the connection leads to an address on the bench although its host
  /// has addresses that are not.
  bool has_better(const Transfer& transfer,
                  const DirectConnection& connection) const;
  /// The most recently used; null if there is none.
  DirectConnection* take_kept(const Transfer& transfer,
                              const ConnectTarget& target);
  void drop(DirectConnection& connection);
  void drop_idle_beside(const DirectConnection& starving);
  /// Looks for new connections that starve behind kept ones.
  void relieve(TimePoint now);
  void expect_check(TimePoint at);

  const TransferSettings& settings_;
  AddressBench& bench_;
  const Finish finish_;
  const Resume resume_;
  const SteadyClock clock_;
  DirectSockets sockets_;
  std::optional<TlsClient> tls_;  // Opened at the first https request.
  std::vector<std::unique_ptr<DirectConnection>> connections_;
  std::vector<Idle> idle_;  // The idle connections; the most recently used
                            // last.
  std::size_t turn_ = 0;    // The next address to try.
  int family_ = 0;          // The address family of the last connection that
                            // was opened.
  std::optional<TimePoint> next_check_;
};

}  // namespace leat
