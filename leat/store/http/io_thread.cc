// The loop: take the mail, let libcurl and the direct GETs act on timers and
// sockets, hand finished transfers over, sleep until a socket, a timer or mail
// wakes it.
//
// A request whose host is a name waits ("parked") until the resolver has
// answered. libcurl is then told the addresses (CURLOPT_RESOLVE), so that it
// never looks names up itself, and open_socket() turns new connections to one
// address after another. Reuse goes by host name, for any address.

#include "leat/store/http/io_thread.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "leat/runtime/thread_name.h"
#include "leat/store/http/http_url.h"

namespace leat {
namespace {

/// How busy the thread is is judged over at least this long.
constexpr std::chrono::milliseconds kWatchFor{5};

void set_port(sockaddr_storage& address, const sockaddr& like) {
  if (address.ss_family == AF_INET) {
    reinterpret_cast<sockaddr_in&>(address).sin_port =
        reinterpret_cast<const sockaddr_in&>(like).sin_port;
  } else {
    reinterpret_cast<sockaddr_in6&>(address).sin6_port =
        reinterpret_cast<const sockaddr_in6&>(like).sin6_port;
  }
}

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
      multi_(curl_multi_init()),
      hosts_(resolver, mailbox_),
      direct_(settings_, poller_,
              [this](Transfer& transfer, Result<HttpReply> result) {
                finish(slot_of(transfer), std::move(result));
              }),
      thread_([this] {
        name_this_thread("leat-http");
        block_sigpipe();
        run();
      }) {}

IoThread::~IoThread() {
  mailbox_->close();
  thread_.join();
  // Closes the connections, through close_socket().
  slots_.clear();
  curl_multi_cleanup(multi_);
}

bool IoThread::submit(Submission& submission) {
  load_.fetch_add(1, std::memory_order_relaxed);
  if (mailbox_->post(submission)) return true;
  load_.fetch_sub(1, std::memory_order_relaxed);
  return false;
}

void IoThread::run() {
  if (!is_usable()) return;
  curl_multi_setopt(multi_, CURLMOPT_SOCKETFUNCTION, &IoThread::on_socket);
  curl_multi_setopt(multi_, CURLMOPT_SOCKETDATA, this);
  curl_multi_setopt(multi_, CURLMOPT_TIMERFUNCTION, &IoThread::on_timer);
  curl_multi_setopt(multi_, CURLMOPT_TIMERDATA, this);
  curl_multi_setopt(multi_, CURLMOPT_PIPELINING, CURLPIPE_NOTHING);
  curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS,
                    static_cast<long>(2 * settings_.options.max_in_flight + 8));
  poller_.watch(mailbox_->wake_fd(), EPOLLIN);

  while (!mailbox_->is_closed()) {
    handle_mail();
    if (curl_wakes_at_ && clock_.now() >= *curl_wakes_at_) {
      curl_wakes_at_.reset();
      act(CURL_SOCKET_TIMEOUT, 0);
    }
    reap();
    handle_events();
    direct_.check();  // Handle the replies that have come first.
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
    if (direct_.hear(event.data.fd)) continue;
    int what = 0;
    if ((event.events & (EPOLLIN | EPOLLHUP)) != 0) what |= CURL_CSELECT_IN;
    if ((event.events & EPOLLOUT) != 0) what |= CURL_CSELECT_OUT;
    if ((event.events & EPOLLERR) != 0) what |= CURL_CSELECT_ERR;
    act(event.data.fd, what);
  }
  reap();
}

std::optional<TimePoint> IoThread::wakes_at() const {
  const std::optional<TimePoint> check = direct_.next_check();
  if (!curl_wakes_at_ || !check) return check ? check : curl_wakes_at_;
  return std::min(*curl_wakes_at_, *check);
}

void BusyWatch::slept(TimePoint from, TimePoint until) {
  slept_ += until - from;
  const Nanoseconds watched = until - since_;
  if (watched < kWatchFor) return;
  is_busy_.store(4 * slept_ < watched, std::memory_order_relaxed);
  since_ = until;
  slept_ = Nanoseconds(0);
}

void IoThread::act(curl_socket_t socket, int events) {
  int running = 0;
  curl_multi_socket_action(multi_, socket, events, &running);
}

void IoThread::reap() {
  int left = 0;
  while (const CURLMsg* message = curl_multi_info_read(multi_, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    const CURLcode code = message->data.result;
    CurlTransfer* transfer = nullptr;
    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &transfer);
    finish(slot_of(transfer->transfer()), transfer->outcome(code));
  }
}

void IoThread::accept(Submission submission) {
  Slot& slot = free_slot();
  slot.submission = std::move(submission);
  const std::stop_token& stop = slot.submission.stop;
  if (stop.stop_requested()) {
    return finish(slot, slot.error(ErrorCode::kCancelled, "cancelled"));
  }
  if (stop.stop_possible()) {
    slot.on_stop.emplace(stop, Transfer::OnStop{mailbox_, slot.id});
  }
  start_when_resolved(slot);
}

void IoThread::start_when_resolved(Slot& slot) {
  const auto url = split_http_url(slot.submission.request.url);
  if (!url) return finish(slot, url.error());
  if (url->host_is_address || settings_.uses_proxy) {
    return start(slot, *url, nullptr);
  }
  HostAnswerRef answer = hosts_.addresses_of(url->host, slot.id, clock_.now());
  if (answer != nullptr) start(slot, *url, std::move(answer));
}

void IoThread::start(Slot& slot, const HttpUrl& url, HostAnswerRef answer) {
  slot.addresses = std::move(answer);
  if (direct_.takes(slot.submission.request)) return direct_.start(slot, url);
  start_in_curl(slot, slot.addresses != nullptr ? hosts_.curl_resolve_entry(url)
                                                : std::string());
}

void IoThread::start_in_curl(Slot& slot, std::string resolved) {
  if (slot.curl == nullptr) {
    slot.curl = std::make_unique<CurlTransfer>(slot, settings_, *this);
  }
  auto begun = slot.curl->begin(std::move(resolved));
  if (!begun) return finish(slot, std::move(begun).error());
  const CURLMcode code = curl_multi_add_handle(multi_, slot.curl->easy());
  if (code != CURLM_OK) {
    return finish(slot, slot.error(ErrorCode::kResourceExhausted,
                                   curl_multi_strerror(code)));
  }
  slot.is_in_curl = true;
}

void IoThread::hear_news(const HostNews& news) {
  for (const TransferId id : hosts_.hear(news, clock_.now())) {
    Slot* slot = find(id);
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
  Slot* slot = find(id);
  if (slot == nullptr) return;  // It was faster.
  direct_.cancel(*slot);
  finish(*slot, slot->error(ErrorCode::kCancelled, "cancelled"));
}

void IoThread::cancel_all() {
  // Not a range-for: a `done` may run anything.
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    Slot& slot = *slots_[i];
    if (!slot.submission.done) continue;
    direct_.cancel(slot);
    finish(slot, slot.error(ErrorCode::kCancelled,
                            "cancelled, since the client is closed"));
  }
}

void IoThread::finish(Slot& slot, Result<HttpReply> result) {
  if (slot.is_in_curl) {
    curl_multi_remove_handle(multi_, slot.curl->easy());
    slot.is_in_curl = false;
  }
  if (slot.curl != nullptr) slot.curl->clear();
  // Waits for a stop callback that is running; it only posts.
  slot.on_stop.reset();
  const HttpDone done = std::move(slot.submission.done);
  slot.submission = {};
  slot.sink.clear();
  slot.addresses.reset();
  ++slot.id.use;
  free_.push_back(&slot);
  load_.fetch_sub(1, std::memory_order_relaxed);
  const auto& notes = settings_.options.notes;
  if (result && notes != nullptr) notes->has_answered = true;
  done(std::move(result));
}

IoThread::Slot* IoThread::find(TransferId id) {
  Slot* slot = slots_[id.slot].get();
  return slot->id.use == id.use && slot->submission.done ? slot : nullptr;
}

IoThread::Slot& IoThread::free_slot() {
  if (free_.empty()) {
    const auto index = static_cast<std::uint32_t>(slots_.size());
    slots_.push_back(std::make_unique<Slot>());
    slots_.back()->id = {.slot = index, .use = 0};
    free_.push_back(slots_.back().get());
  }
  Slot* slot = free_.back();
  free_.pop_back();
  return *slot;
}

curl_socket_t IoThread::open_socket(const HostAnswer* addresses,
                                    curl_sockaddr& address) {
  // In turn over the family that the system prefers; the other family is
  // libcurl's second choice, and left as it came.
  if (addresses != nullptr) {
    const int family = addresses->addresses.front().address.ss_family;
    const auto& all = addresses->addresses;
    const std::size_t count = all.size() > kMostTold ? kMostTold : all.size();
    for (std::size_t i = 0; i < count && address.family == family; ++i) {
      HostAddress next = all[next_address_++ % count];
      if (next.address.ss_family != family) continue;
      set_port(next.address, address.addr);
      std::memcpy(&address.addr, &next.address, next.size_bytes);
      address.addrlen = next.size_bytes;
      break;
    }
  }
  const int opened =
      socket(address.family, address.socktype | SOCK_CLOEXEC, address.protocol);
  if (opened < 0) return CURL_SOCKET_BAD;
  poller_.adopt(opened);
  if (settings_.metrics != nullptr) {
    settings_.metrics->add(Metric::kStoreConnections, 1);
  }
  return opened;
}

int IoThread::close_socket(curl_socket_t socket) {
  poller_.forget(socket);
  return close(socket);
}

int IoThread::on_socket(CURL* /*easy*/, curl_socket_t socket, int what,
                        void* self, void* /*unused*/) {
  std::uint32_t events = 0;
  if (what == CURL_POLL_IN || what == CURL_POLL_INOUT) events |= EPOLLIN;
  if (what == CURL_POLL_OUT || what == CURL_POLL_INOUT) events |= EPOLLOUT;
  static_cast<IoThread*>(self)->poller_.watch(socket, events);
  return 0;
}

int IoThread::on_timer(CURLM* /*multi*/, long milliseconds, void* self) {
  auto& io = *static_cast<IoThread*>(self);
  if (milliseconds < 0) {
    io.curl_wakes_at_.reset();
  } else {
    io.curl_wakes_at_ =
        io.clock_.now() + std::chrono::milliseconds(milliseconds);
  }
  return 0;
}

}  // namespace leat
