// The loop: take the mail, let libcurl and the direct GETs act on timers and
// sockets, hand finished transfers over, sleep until a socket, a timer or mail
// wakes it.
//
// A GET goes over a kept connection, if there is one. Any other request whose
// host is a name waits ("parked") until the resolver has answered. libcurl is
// then told the addresses (CURLOPT_RESOLVE), so that it never looks names up
// itself, and CurlRequests turns new connections to one address after another.
// Reuse goes by host name, for any address.

#include "leat/store/http/io_thread.h"

#include <pthread.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "leat/runtime/thread_name.h"
#include "leat/store/http/http_url.h"
#include "leat/store/http/request_head.h"
#include "leat/store/http/retry_after.h"
#include "leat/store/http/status.h"

namespace leat {
namespace {

/// How busy the thread is is judged over at least this long.
constexpr std::chrono::milliseconds kWatchFor{5};

/// OpenSSL writes to sockets that may have been closed.
void block_sigpipe() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

}  // namespace

IoThread::IoThread(const TransferSettings& settings, Resolver& resolver)
    : settings_(settings),
      mailbox_(std::make_shared<Mailbox>()),
      hosts_(resolver, mailbox_),
      link_(settings_.options.progress_window),
      direct_(
          settings_, poller_, bench_,
          [this](Transfer& transfer, Result<HttpReply> result) {
            finish(transfer, std::move(result));
          },
          [this](Transfer& transfer) { start_when_resolved(transfer); }),
      curl_(settings_, poller_, bench_,
            [this](Transfer& transfer, Result<HttpReply> result) {
              finish(transfer, std::move(result));
            }),
      thread_([this] {
        name_this_thread("leat-http");
        block_sigpipe();
        run();
      }) {}

IoThread::~IoThread() {
  mailbox_->close();
  thread_.join();
}

bool IoThread::submit(Submission& submission) {
  load_.fetch_add(1, std::memory_order_relaxed);
  if (mailbox_->post(submission)) return true;
  load_.fetch_sub(1, std::memory_order_relaxed);
  return false;
}

void IoThread::run() {
  if (!is_usable()) return;
  poller_.watch(mailbox_->wake_fd(), EPOLLIN);

  while (!mailbox_->is_closed()) {
    handle_mail();
    curl_.check();
    handle_events();
    // Handle the replies that have come first.
    direct_.check();
    curl_.check();
  }
  handle_mail();
  cancel_all();
}

void IoThread::handle_mail() {
  mailbox_->take(mail_);
  for (const TransferId id : mail_.cancels) cancel(id);
  for (const HostNews& news : mail_.news) hear_news(news);
  for (Submission& submission : mail_.submissions) {
    accept(std::move(submission));
  }
  mail_.cancels.clear();
  mail_.news.clear();
  mail_.submissions.clear();
}

void IoThread::handle_events() {
  const bool may_sleep = mailbox_->may_sleep();
  const TimePoint from = clock_.now();
  const auto events =
      poller_.wait(may_sleep ? wakes_at() : std::optional(TimePoint()));
  if (may_sleep) mailbox_->awake();
  watch_.slept(from, clock_.now());
  for (const epoll_event& event : events) {
    if (event.data.fd == mailbox_->wake_fd()) {
      eventfd_t ignored = 0;
      (void)!eventfd_read(mailbox_->wake_fd(), &ignored);
      continue;
    }
    if (!direct_.hear(event.data.fd)) curl_.hear(event);
  }
}

std::optional<TimePoint> IoThread::wakes_at() const {
  const std::optional<TimePoint> direct = direct_.next_check();
  const std::optional<TimePoint> curl = curl_.next_check();
  if (!direct || !curl) return direct ? direct : curl;
  return std::min(*direct, *curl);
}

void BusyWatch::slept(TimePoint from, TimePoint until) {
  slept_ += until - from;
  const Nanoseconds watched = until - since_;
  if (watched < kWatchFor) return;
  is_busy_.store(4 * slept_ < watched, std::memory_order_relaxed);
  since_ = until;
  slept_ = Nanoseconds(0);
}

void IoThread::accept(Submission submission) {
  Transfer& slot = free_slot();
  slot.submission = std::move(submission);
  const std::stop_token& stop = slot.submission.stop;
  if (stop.stop_requested()) {
    return finish(slot, slot.error(ErrorCode::kCancelled, "cancelled"));
  }
  if (stop.stop_possible()) {
    slot.on_stop.emplace(stop, Transfer::OnStop{mailbox_, slot.id});
  }
  begin(slot);
}

void IoThread::begin(Transfer& slot) {
  const HttpRequest& request = slot.submission.request;
  const auto url = split_http_url(request.url);
  if (!url) return finish(slot, url.error());
  if (auto checked = check_headers(request); !checked) {
    return finish(slot, std::move(checked).error());
  }
  slot.times = &times_.of(url->host, url->port);
  slot.watch.open(patience_for(request, settings_.options, *slot.times), link_,
                  clock_.now());
  if (direct_.takes(request)) {
    slot.addresses = hosts_.last_answer(url->host);
    if (direct_.start_on_kept(slot, *url)) return;
  }
  start_when_resolved(slot);
}

void IoThread::start_when_resolved(Transfer& slot) {
  const auto url = split_http_url(slot.submission.request.url);
  slot.addresses.reset();
  if (!url->host_is_address && !settings_.uses_proxy) {
    const TimePoint now = clock_.now();
    slot.addresses = hosts_.addresses_of(url->host, slot.id, now);
    if (slot.addresses == nullptr) return;  // Until there is news.
    const auto is_benched = [&](const HostAddress& one) {
      return bench_.has(one.text, url->port, now);
    };
    // The service may have moved.
    if (std::ranges::all_of(slot.addresses->addresses, is_benched)) {
      hosts_.doubt(url->host, now);
    }
  }
  start(slot, *url);
}

void IoThread::start(Transfer& slot, const HttpUrl& url) {
  if (direct_.takes(slot.submission.request)) return direct_.start(slot, url);
  curl_.start(slot, slot.addresses != nullptr ? hosts_.curl_resolve_entry(url)
                                              : std::string());
}

void IoThread::hear_news(const HostNews& news) {
  for (const TransferId id : hosts_.hear(news, clock_.now())) {
    Transfer* slot = find(id);
    if (slot == nullptr) continue;  // Cancelled meanwhile.
    if (news.answer) {
      start_when_resolved(*slot);
    } else {
      finish(*slot, slot->error(news.answer.error().code(),
                                news.answer.error().message()));
    }
  }
}

void IoThread::cancel(TransferId id) {
  Transfer* slot = find(id);
  if (slot == nullptr) return;  // It was faster.
  direct_.cancel(*slot);
  curl_.cancel(*slot);
  finish(*slot, slot->error(ErrorCode::kCancelled, "cancelled"));
}

void IoThread::cancel_all() {
  // Not a range-for: a `done` may run anything.
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    Transfer& slot = *slots_[i];
    if (!slot.submission.done) continue;
    direct_.cancel(slot);
    curl_.cancel(slot);
    finish(slot, slot.error(ErrorCode::kCancelled,
                            "cancelled, since the client is closed"));
  }
}

void IoThread::finish(Transfer& slot, Result<HttpReply> result) {
  if (result && is_success(result->status) &&
      !slot.submission.request.into.empty()) {
    slot.times->note(slot.watch.until_first_byte());
  }
  // Waits for a stop callback that is running; it only posts.
  slot.on_stop.reset();
  const HttpDone done = std::move(slot.submission.done);
  slot.submission = {};
  slot.sink.clear();
  slot.watch.close();
  slot.addresses.reset();
  ++slot.id.use;
  free_.push_back(&slot);
  load_.fetch_sub(1, std::memory_order_relaxed);
  const auto& notes = settings_.options.notes;
  if (result && notes != nullptr) {
    const TimePoint now = clock_.now();
    notes->note_answer(now);
    if (const auto wait = retry_after(*result)) {
      notes->note_not_before(now + *wait);
    }
  }
  done(std::move(result));
}

Transfer* IoThread::find(TransferId id) {
  Transfer* slot = slots_[id.slot].get();
  return slot->id.use == id.use && slot->submission.done ? slot : nullptr;
}

Transfer& IoThread::free_slot() {
  if (free_.empty()) {
    const auto index = static_cast<std::uint32_t>(slots_.size());
    slots_.push_back(std::make_unique<Transfer>());
    slots_.back()->id = {.slot = index, .use = 0};
    free_.push_back(slots_.back().get());
  }
  Transfer* slot = free_.back();
  free_.pop_back();
  return *slot;
}

}  // namespace leat
