// Requests over libcurl.
#pragma once
#include <curl/curl.h>
#include <poll.h>
#include <sys/epoll.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "leat/base/clock.h"
#include "leat/store/http/address_bench.h"
#include "leat/store/http/curl_transfer.h"
#include "leat/store/http/poller.h"
#include "leat/store/http/transfer.h"

namespace leat {

/// Carries requests through libcurl's multi interface. New connections take a
/// host's addresses in turn, but for those on the bench.
///
/// Threads: one, which has SIGPIPE blocked.
class CurlRequests final : public SocketOwner {
 public:
  using Finish = std::function<void(Transfer&, Result<HttpReply>)>;

  /// `finish` is called once for each start() that is not cancelled, possibly
  /// from within it.
  CurlRequests(const TransferSettings& settings, Poller& poller,
               AddressBench& bench, Finish finish);
  ~CurlRequests() override;
  CurlRequests(const CurlRequests&) = delete;
  CurlRequests& operator=(const CurlRequests&) = delete;

  bool is_usable() const { return multi_ != nullptr; }

  /// `resolved`, if not empty, tells libcurl the addresses of the host:
  /// "host:port:address,...".
  void start(Transfer& transfer, std::string resolved);
  /// Releases the request; does nothing if none carries it.
  void cancel(const Transfer& transfer);

  void hear(const epoll_event& event);
  /// Lets libcurl act on its timers, and ends what is too slow. Due at
  /// next_check().
  void check();
  std::optional<TimePoint> next_check() const;

 private:
  curl_socket_t open_socket(CurlTransfer& carrier,
                            curl_sockaddr& address) override;
  int close_socket(curl_socket_t socket) override;
  static int on_socket(CURL* easy, curl_socket_t socket, int what, void* self,
                       void* unused);
  static int on_timer(CURLM* multi, long milliseconds, void* self);

  void act(curl_socket_t socket, int events);
  void end_noisy_idle_ones();
  void reap();
  void end_the_slow(TimePoint now);
  void release(CurlTransfer& carrier);
  void finish(CurlTransfer& carrier, Result<HttpReply> result);
  /// Turns `address` to the next of its family; returns it as text.
  std::string turn_to_next(const HostAnswer& answer, curl_sockaddr& address);

  const TransferSettings& settings_;
  Poller& poller_;
  AddressBench& bench_;
  const Finish finish_;
  const SteadyClock clock_;
  CURLM* const multi_;
  std::optional<TimePoint> curl_wakes_at_;
  std::optional<TimePoint> next_look_;  // For what is too slow.
  std::size_t next_address_ = 0;
  std::size_t busy_ = 0;
  std::vector<pollfd> idle_;  // The sockets of kept connections.
  // By the slot of the transfer.
  std::vector<std::unique_ptr<CurlTransfer>> carriers_;
};

}  // namespace leat
