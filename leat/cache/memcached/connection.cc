#include "leat/cache/memcached/connection.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "leat/base/buffer.h"
#include "leat/base/units.h"
#include "leat/runtime/log.h"

namespace leat {
namespace {

constexpr RetryOptions kBackoff{.base_backoff = std::chrono::milliseconds(200),
                                .most_backoff = std::chrono::seconds(5)};

/// A full server refuses thousands of values a second.
constexpr std::chrono::seconds kBetweenSlabQuestions{30};

void set_port(sockaddr_storage& address, std::uint16_t port) {
  if (address.ss_family == AF_INET6) {
    reinterpret_cast<sockaddr_in6&>(address).sin6_port = htons(port);
  } else {
    reinterpret_cast<sockaddr_in&>(address).sin_port = htons(port);
  }
}

int error_of(int fd) {
  int number = 0;
  socklen_t size = sizeof(number);
  getsockopt(fd, SOL_SOCKET, SO_ERROR, &number, &size);
  return number;
}

bool would_block() { return errno == EAGAIN || errno == EWOULDBLOCK; }

}  // namespace

Connection::Connection(ServerName server, PeerSettings settings, Poller& poller,
                       ConnectionEvents events)
    : server_(std::move(server)),
      settings_(settings),
      poller_(poller),
      events_(std::move(events)),
      retry_at_(clock_.now()),
      backoff_(kBackoff, xxh3_64(as_bytes(server_.text())) ^
                             static_cast<std::uint64_t>(getpid())),
      pipeline_(settings.ttl, settings.key),
      inbox_(kReadBytes) {}

Connection::~Connection() {
  for (const auto& operation : later_) refuse(operation);
  if (fd_ < 0) return;
  poller_.forget(fd_);
  ::close(fd_);
}

void Connection::submit(const PeerOperationRef& operation) {
  if (state_ != State::kUp && failures_ > 0) {
    say_why_down();
    return refuse(operation);
  }
  if (operation->begins > clock_.now()) {
    later_.push_back(operation);
    return;
  }
  if (state_ == State::kUp && !pipeline_.is_owed()) {
    last_progress_ = clock_.now();
  }
  pipeline_.ask(operation);
  if (state_ == State::kUp) write();
}

void Connection::check_time() {
  const TimePoint now = clock_.now();
  if (state_ == State::kResting) {
    if (now >= retry_at_) begin();
    return;
  }
  // Read the replies that have come: perhaps only this thread was late.
  const auto wake = fails_at();
  if (wake && now >= *wake && is_spoken_to()) read();
  const auto due = pipeline_.first_due();
  if (due && now >= *due) return fail("an answer is overdue");
  if (fails_at() && now >= *fails_at()) {
    return fail("nothing came for " + format_duration(settings_.patience));
  }
  while (!later_.empty() && now >= later_.front()->begins) {
    const PeerOperationRef operation = std::move(later_.front());
    later_.pop_front();
    submit(operation);
  }
}

std::optional<TimePoint> Connection::fails_at() const {
  if (state_ == State::kResting) return {};
  auto at = pipeline_.first_due();
  if (state_ != State::kUp || pipeline_.is_owed()) {
    const TimePoint impatient = last_progress_ + settings_.patience;
    at = at ? std::min(*at, impatient) : impatient;
  }
  return at;
}

std::optional<TimePoint> Connection::wakes_at() const {
  if (state_ == State::kResting) return retry_at_;
  auto wake = fails_at();
  if (!later_.empty()) {
    const TimePoint begins = later_.front()->begins;
    wake = wake ? std::min(*wake, begins) : begins;
  }
  return wake;
}

void Connection::begin() {
  state_ = State::kResolving;
  last_progress_ = clock_.now();
  events_.resolve();
}

void Connection::resolved(const Result<HostAnswerRef>& answer) {
  if (state_ != State::kResolving) return;
  if (!answer) return fail(answer.error().message());
  const auto& addresses = (*answer)->addresses;
  connect_to(addresses[next_address_++ % addresses.size()]);
}

void Connection::connect_to(const HostAddress& known) {
  HostAddress address = known;
  set_port(address.address, server_.port);
  fd_ = socket(address.address.ss_family,
               SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd_ < 0) return fail(std::strerror(errno));
  const int on = 1;
  setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  poller_.adopt(fd_);
  state_ = State::kConnecting;
  last_progress_ = clock_.now();
  if (connect(fd_, reinterpret_cast<const sockaddr*>(&address.address),
              address.size_bytes) != 0 &&
      errno != EINPROGRESS) {
    return fail(std::strerror(errno));
  }
  poller_.watch(fd_, EPOLLOUT);
}

void Connection::act(std::uint32_t events) {
  if (state_ == State::kConnecting) {
    const int number = error_of(fd_);
    if (number != 0) return fail(std::strerror(number));
    return ask_what_it_is();
  }
  if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) read();
  if (fd_ >= 0 && (events & EPOLLOUT) != 0) write();
}

void Connection::ask_what_it_is() {
  state_ = State::kAsking;
  last_progress_ = clock_.now();
  pipeline_.ask_statistics("stats settings", [this](const auto& line) {
    if (!line) return is_up();
    if (*line == "evictions on") warn_of_evictions();
    const auto statistic = parse_statistic(*line);
    if (statistic && statistic->name == "maxbytes") {
      limit_bytes_ = statistic->value;
    }
  });
  write();
}

void Connection::warn_of_evictions() {
  if (was_up_) return;
  log_warning(fmt::format(
      "memcached at {} evicts what was used longest ago, which in training is "
      "what comes next; start it with -M, and with -I 8m",
      server_.text()));
}

void Connection::is_up() {
  if (failures_ > 0 && was_up_ && unsaid_.empty()) {
    log_info(fmt::format("memcached at {} is back", server_.text()));
  }
  state_ = State::kUp;
  last_progress_ = clock_.now();
  failures_ = 0;
  unsaid_.clear();
  was_up_ = true;
  events_.is_up(limit_bytes_);
}

void Connection::write() {
  while (true) {
    // Until the server is up, only the question for its settings is sent.
    const auto bytes =
        state_ == State::kUp ? pipeline_.to_send() : pipeline_.half_sent();
    if (bytes.empty()) break;
    const ssize_t some =
        send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (some < 0 && errno == EINTR) continue;
    if (some < 0 && would_block()) break;
    if (some < 0) return fail(std::strerror(errno));
    last_progress_ = clock_.now();
    pipeline_.sent(static_cast<std::size_t>(some));
  }
  watch();
}

void Connection::watch() {
  if (fd_ < 0) return;
  poller_.watch(fd_,
                pipeline_.half_sent().empty() ? EPOLLIN : EPOLLIN | EPOLLOUT);
}

void Connection::read() {
  while (fd_ >= 0) {
    const ssize_t some = recv(fd_, inbox_.data(), inbox_.size(), MSG_DONTWAIT);
    if (some < 0 && errno == EINTR) continue;
    if (some < 0 && would_block()) break;
    if (some < 0) return fail(std::strerror(errno));
    if (some == 0) return fail("it closed the connection");
    // A server that sends statistics without end counts as dead.
    if (state_ == State::kUp) last_progress_ = clock_.now();
    const auto bytes = std::span<const std::byte>(inbox_).first(
        static_cast<std::size_t>(some));
    if (!pipeline_.receive(bytes))
      return fail("it does not speak as memcached");
    if (static_cast<std::size_t>(some) < inbox_.size()) break;
  }
  if (const auto refused = pipeline_.take_refusal())
    ask_about_refusal(*refused);
  write();
}

void Connection::ask_about_refusal(std::size_t item_bytes) {
  const TimePoint now = clock_.now();
  if (has_complained_ || now < ask_slabs_at_) return;
  ask_slabs_at_ = now + kBetweenSlabQuestions;
  auto slabs = std::make_shared<SlabStatistics>();
  pipeline_.ask_statistics("stats slabs", [=, this](const auto& line) {
    if (line) return slabs->add(*line);
    const auto complaint =
        slabs->complaint(server_.text(), item_bytes, limit_bytes_);
    if (!complaint) return;
    has_complained_ = true;
    log_warning(*complaint);
  });
}

void Connection::fail(std::string_view why) {
  // A server that ends with its job, when nobody asks for more, is not
  // worth a log line.
  if (failures_ == 0) unsaid_ = why;
  const bool is_idle = was_up_ && !pipeline_.is_owed() && later_.empty();
  if (!is_idle) say_why_down();
  if (fd_ >= 0) {
    poller_.forget(fd_);
    ::close(fd_);
    fd_ = -1;
  }
  state_ = State::kResting;
  ++failures_;
  retry_at_ = clock_.now() + backoff_.draw_backoff(failures_);
  pipeline_.give_up();
  for (const auto& operation : std::exchange(later_, {})) refuse(operation);
  events_.is_down();
}

void Connection::say_why_down() {
  if (unsaid_.empty()) return;
  log_warning(
      fmt::format("memcached at {} is left alone for now ({}); what it holds "
                  "is read from the bucket until it is back",
                  server_.text(), unsaid_));
  unsaid_.clear();
}

}  // namespace leat
