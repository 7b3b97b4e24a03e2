// One thread that carries requests, with connections of its own.
#pragma once
#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "leat/base/clock.h"
#include "leat/store/http/address_bench.h"
#include "leat/store/http/curl_requests.h"
#include "leat/store/http/direct_gets.h"
#include "leat/store/http/first_byte_times.h"
#include "leat/store/http/host_book.h"
#include "leat/store/http/mailbox.h"
#include "leat/store/http/poller.h"
#include "leat/store/http/reply_watch.h"
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

/// Carries GETs and HEADs over its own connections, and everything else through
/// libcurl's multi interface; both on one epoll.
///
/// Everything but submit(), load() and is_busy() is for the one thread: the
/// transfers, the connections, the knowledge of hosts and addresses.
///
/// Threads: any for submit(), load() and is_busy(). Lifetime: destruction
/// answers all accepted requests with kCancelled and
///           joins. `resolver` must outlive it.
class IoThread final {
 public:
  IoThread(const TransferSettings& settings, Resolver& resolver);
  ~IoThread();
  IoThread(const IoThread&) = delete;
  IoThread& operator=(const IoThread&) = delete;

  /// Takes `submission` and answers it later; false, leaving it unchanged, if
  /// the thread is ending.
  bool submit(Submission& submission);
  /// False if the process had no file descriptors left for it; then it must not
  /// be given work.
  bool is_usable() const {
    return poller_.is_open() && mailbox_->wake_fd() >= 0 && curl_.is_usable();
  }
  /// Requests that have been submitted but not answered.
  std::size_t load() const { return load_.load(std::memory_order_relaxed); }
  /// True if it has requests and has recently worked on them most of the time.
  bool is_busy() const { return load() != 0 && watch_.is_busy(); }

 private:
  void run();
  void handle_mail();
  void handle_events();
  void cancel_all();

  void accept(Submission submission);
  void begin(Transfer& slot);
  void start_when_resolved(Transfer& slot);
  void start(Transfer& slot, const HttpUrl& url);
  void hear_news(const HostNews& news);
  void cancel(TransferId id);
  void finish(Transfer& slot, Result<HttpReply> result);
  std::optional<TimePoint> wakes_at() const;

  Transfer* find(TransferId id);
  Transfer& free_slot();

  const TransferSettings settings_;
  const std::shared_ptr<Mailbox> mailbox_;
  std::atomic<std::size_t> load_ = 0;
  BusyWatch watch_;

  // Used by the thread alone.
  const SteadyClock clock_;
  Poller poller_;
  HostBook hosts_;
  FirstByteBook times_;
  LinkRate link_;
  std::vector<std::unique_ptr<Transfer>> slots_;
  std::vector<Transfer*> free_;
  AddressBench bench_;
  Mailbox::Mail mail_;
  DirectGets direct_;
  CurlRequests curl_;

  std::jthread thread_;  // Last: joined before the rest dies.
};

}  // namespace leat
