// One thread that carries requests, with connections of its own.
#pragma once
#include <curl/curl.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "leat/base/clock.h"
#include "leat/store/http/curl_transfer.h"
#include "leat/store/http/direct_gets.h"
#include "leat/store/http/host_book.h"
#include "leat/store/http/mailbox.h"
#include "leat/store/http/poller.h"
#include "leat/store/http/resolver.h"

namespace leat {

/// Tells whether a thread has worked for most of the last milliseconds.
///
/// Threads: is_busy() any; slept() the one that is watched.
class BusyWatch {
 public:
  bool is_busy() const { return is_busy_.load(std::memory_order_relaxed); }
  void slept(TimePoint from, TimePoint until);

 private:
  std::atomic<bool> is_busy_ = false;
  TimePoint since_{};
  Nanoseconds slept_{0};
};

/// Carries GETs over its own connections, and everything else through libcurl's
/// multi interface; both on one epoll.
///
/// Everything but submit(), load() and is_busy() is for the one thread: the
/// multi handle, the transfers, the connections, the knowledge of hosts.
///
/// Threads: any for submit(), load() and is_busy(). Lifetime: destruction
/// answers all accepted requests with kCancelled and
///           joins. `resolver` must outlive it.
class IoThread final : public SocketOwner {
 public:
  IoThread(const TransferSettings& settings, Resolver& resolver);
  ~IoThread() override;
  IoThread(const IoThread&) = delete;
  IoThread& operator=(const IoThread&) = delete;

  /// Takes `submission` and answers it later; false, leaving it unchanged, if
  /// the thread is ending.
  bool submit(Submission& submission);
  /// False if the process had no file descriptors left for it; then it must not
  /// be given work.
  bool is_usable() const {
    return poller_.is_open() && mailbox_->wake_fd() >= 0 && multi_ != nullptr;
  }
  /// Requests that have been submitted but not answered.
  std::size_t load() const { return load_.load(std::memory_order_relaxed); }
  /// True if it has requests and has recently worked on them most of the time.
  bool is_busy() const { return load() != 0 && watch_.is_busy(); }

 private:
  /// A request, with libcurl's handle once it has carried
  /// one.
  struct Slot : Transfer {
    std::unique_ptr<CurlTransfer> curl;
    bool is_in_curl = false;  ///< In the multi handle.
  };

  curl_socket_t open_socket(const HostAnswer* addresses,
                            curl_sockaddr& address) override;
  int close_socket(curl_socket_t socket) override;
  static int on_socket(CURL* easy, curl_socket_t socket, int what, void* self,
                       void* unused);
  static int on_timer(CURLM* multi, long milliseconds, void* self);

  void run();
  void handle_mail();
  void handle_events();
  void act(curl_socket_t socket, int events);
  void reap();
  void cancel_all();

  void accept(Submission submission);
  void start_when_resolved(Slot& slot);
  void start(Slot& slot, const HttpUrl& url, HostAnswerRef answer);
  void start_in_curl(Slot& slot, std::string resolved);
  void hear_news(const HostNews& news);
  void cancel(TransferId id);
  void finish(Slot& slot, Result<HttpReply> result);
  std::optional<TimePoint> wakes_at() const;

  Slot& slot_of(const Transfer& transfer) { return *slots_[transfer.id.slot]; }
  Slot* find(TransferId id);
  Slot& free_slot();

  const TransferSettings settings_;
  const std::shared_ptr<Mailbox> mailbox_;
  std::atomic<std::size_t> load_ = 0;
  BusyWatch watch_;

  // Used by the thread alone.
  const SteadyClock clock_;
  Poller poller_;
  CURLM* const multi_;
  std::optional<TimePoint> curl_wakes_at_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::vector<Slot*> free_;
  HostBook hosts_;
  std::size_t next_address_ = 0;
  Mailbox::Mail mail_;
  DirectGets direct_;

  std::jthread thread_;  // Last: joined before the rest dies.
};

}  // namespace leat
