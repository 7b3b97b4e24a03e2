// GETs over connections of our own. Internal to store/http: includes Beast.
#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "leat/base/clock.h"
#include "leat/store/http/direct_connection.h"
#include "leat/store/http/http_url.h"
#include "leat/store/http/poller.h"
#include "leat/store/http/transfer.h"

namespace leat {

/// Carries GETs from the socket straight into the memory that they are for.
///
/// A training that reads from a bucket does little else than GETs, and libcurl
/// needs about twice what the kernel does for one: it reads into a buffer of
/// its own, asks the kernel four times whether it may, and copies. libcurl
/// carries all other methods, and everything that goes through a proxy.
///
/// One request at a time on a connection, kept for those that follow. The
/// addresses of a host are taken in turn; one that refuses or is silent gives
/// way to the next, and first to one of the other family.
///
/// Threads: one, which has SIGPIPE blocked.
class DirectGets {
 public:
  using Finish = std::function<void(Transfer&, Result<HttpReply>)>;

  /// `finish` is called once for each start() that is not cancelled, maybe from
  /// within it.
  DirectGets(const TransferSettings& settings, Poller& poller, Finish finish);

  /// True if start() can carry it.
  bool takes(const HttpRequest& request) const;

  /// `url` is that of the request, split. REQUIRES: Transfer::addresses is set
  /// unless its host is an address.
  void start(Transfer& transfer, const HttpUrl& url);
  /// Lets go of it and of the connection that carries it; nothing if none does.
  void cancel(const Transfer& transfer);

  /// True if it is one of our sockets that made itself heard.
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
  void open(Transfer& transfer, ConnectTarget target, std::string head);
  void settle(DirectConnection& connection,
              std::optional<DirectConnection::Verdict> verdict);
  void note(const DirectConnection::Verdict& verdict);
  /// The most recently used; null if there is none.
  DirectConnection* take_idle(const ConnectTarget& target);
  void drop(DirectConnection& connection);
  void expect_check(TimePoint at);

  const TransferSettings& settings_;
  const Finish finish_;
  const SteadyClock clock_;
  DirectSockets sockets_;
  std::optional<TlsClient> tls_;  // From the first https on.
  std::vector<std::unique_ptr<DirectConnection>> connections_;
  std::vector<Idle> idle_;  // The idle connections; the most recently used
                            // last.
  std::size_t turn_ = 0;    // The next of the addresses to try.
  int family_ = 0;          // The address family of the last connection that
                            // was opened.
  std::optional<TimePoint> next_check_;
};

}  // namespace leat
