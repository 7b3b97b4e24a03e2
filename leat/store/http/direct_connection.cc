#include "leat/store/http/direct_connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "leat/base/check.h"

namespace leat {
namespace {

namespace beast = boost::beast::http;

/// How long the first address has before one of the other family is tried
/// (RFC 8305 recommends 250 ms between attempts).
constexpr std::chrono::milliseconds kFirstAttempt{250};

/// What one connection may take before the others have their turn.
constexpr std::size_t kMostBytesATurn = 1 << 20;

/// Of heads, and of bodies that have no place.
constexpr std::size_t kScratchBytes = 4 * 1024;

/// "100 Continue" and "103 Early Hints", over and over, are no reply.
constexpr int kMostInterimReplies = 16;

}  // namespace

void DirectSockets::opened(int fd, DirectConnection& connection) {
  const auto index = static_cast<std::size_t>(fd);
  if (index >= by_fd_.size()) by_fd_.resize(index + 64);
  by_fd_[index] = &connection;
  poller_.adopt(fd);
  if (metrics_ != nullptr) metrics_->add(Metric::kStoreConnections, 1);
}

void DirectSockets::closing(int fd) {
  by_fd_[static_cast<std::size_t>(fd)] = nullptr;
  poller_.forget(fd);
}

DirectConnection* DirectSockets::at(int fd) const {
  const auto index = static_cast<std::size_t>(fd);
  return index < by_fd_.size() ? by_fd_[index] : nullptr;
}

DirectConnection::DirectConnection(ConnectPlan plan, DirectSockets& sockets)
    : plan_(std::move(plan)),
      sockets_(sockets),
      last_error_(ErrorCode::kUnavailable, "the host has no address") {}

DirectConnection::~DirectConnection() { close_socket(); }

void DirectConnection::close_socket() {
  if (stream_.fd() < 0) return;
  sockets_.closing(stream_.fd());
  stream_ = Stream();
}

std::string DirectConnection::release() {
  transfer_ = nullptr;
  return std::exchange(head_, {});
}

auto DirectConnection::carry(Transfer& transfer, std::string head,
                             TimePoint now) -> Progress {
  LEAT_CHECK(transfer_ == nullptr);
  transfer_ = &transfer;
  transfer.sink.open(transfer.submission.request);
  head_ = std::move(head);
  sent_bytes_ = 0;
  moved_at_ = now;
  parser_.reset();
  unparsed_.clear();
  interim_replies_ = 0;
  place_left_bytes_ = 0;
  is_reused_ = has_connected();
  return is_reused_ ? send_head(now) : try_next_address(now);
}

auto DirectConnection::step(TimePoint now) -> Progress {
  switch (state_) {
    case State::kConnecting:
      return finish_connect(now);
    case State::kHandshaking:
      return shake_hands(now);
    case State::kSending:
      return send_head(now);
    case State::kReading:
      return receive(now);
  }
  return std::nullopt;
}

TimePoint DirectConnection::deadline() const {
  return has_connected() ? moved_at_ + plan_.stall_timeout : attempt_until_;
}

auto DirectConnection::check(TimePoint now) -> Progress {
  if (now < deadline()) return std::nullopt;
  if (has_connected()) {
    return fail(Error(
        ErrorCode::kDeadlineExceeded,
        fmt::format("nothing was sent or received for {} s; check the network; "
                    "lower max_in_flight if it is overloaded",
                    plan_.stall_timeout.count())));
  }
  last_error_ = Error(ErrorCode::kDeadlineExceeded,
                      "the server does not answer; check the network, and that "
                      "host and port are right");
  if (now >= plan_.connect_until) return fail(last_error_);
  return try_next_address(now);
}

auto DirectConnection::try_next_address(TimePoint now) -> Progress {
  while (next_address_ < plan_.addresses.size()) {
    close_socket();
    const HostAddress& address = plan_.addresses[next_address_++];
    auto opened = Stream::open(address, plan_.endpoint.port);
    if (!opened) {
      last_error_ = opened.error();
      if (last_error_.code() == ErrorCode::kResourceExhausted) break;
      continue;
    }
    stream_ = *std::move(opened);
    state_ = State::kConnecting;
    family_ = address.address.ss_family;
    sockets_.opened(stream_.fd(), *this);
    sockets_.watch(stream_.fd(), EPOLLOUT);
    const auto left = static_cast<long>(plan_.addresses.size() - next_address_);
    Nanoseconds patience = (plan_.connect_until - now) / (left + 1);
    if (next_address_ == 1 && left != 0 &&
        plan_.addresses[1].address.ss_family != family_) {
      patience = std::min<Nanoseconds>(patience, kFirstAttempt);
    }
    attempt_until_ = now + patience;
    return std::nullopt;
  }
  return fail(last_error_);
}

auto DirectConnection::finish_connect(TimePoint now) -> Progress {
  if (auto connected = stream_.connected(); !connected) {
    last_error_ = connected.error();
    return try_next_address(now);
  }
  attempt_until_ = plan_.connect_until;
  if (!plan_.endpoint.is_tls) return send_head(now);
  const Endpoint& to = plan_.endpoint;
  if (auto secured = stream_.secure(*plan_.tls, to.host, to.host_is_address);
      !secured) {
    return fail(secured.error());
  }
  state_ = State::kHandshaking;
  return shake_hands(now);
}

auto DirectConnection::shake_hands(TimePoint now) -> Progress {
  const IoOutcome outcome = stream_.handshake();
  if (outcome.status == IoStatus::kDone) return send_head(now);
  return wait_for(outcome.status);
}

auto DirectConnection::send_head(TimePoint now) -> Progress {
  state_ = State::kSending;
  moved_at_ = now;
  while (sent_bytes_ < head_.size()) {
    const IoOutcome outcome =
        stream_.write(std::string_view(head_).substr(sent_bytes_));
    if (outcome.status != IoStatus::kDone) return wait_for(outcome.status);
    sent_bytes_ += outcome.bytes;
  }
  state_ = State::kReading;
  sockets_.watch(stream_.fd(), EPOLLIN);
  return std::nullopt;
}

auto DirectConnection::wait_for(IoStatus status) -> Progress {
  switch (status) {
    case IoStatus::kWantRead:
      sockets_.watch(stream_.fd(), EPOLLIN);
      return std::nullopt;
    case IoStatus::kWantWrite:
      sockets_.watch(stream_.fd(), EPOLLIN | EPOLLOUT);
      return std::nullopt;
    default:
      return over(status);
  }
}

auto DirectConnection::receive(TimePoint now) -> Progress {
  moved_at_ = now;
  std::array<std::byte, kScratchBytes> scratch;
  std::size_t turn_bytes = 0;
  do {
    const bool has_place = place_left_bytes_ != 0;
    const std::span<std::byte> into =
        has_place ? transfer_->sink.place().first(place_left_bytes_)
                  : std::span<std::byte>(scratch);
    const IoOutcome outcome = stream_.read(into);
    if (outcome.status != IoStatus::kDone) return wait_for(outcome.status);
    turn_bytes += outcome.bytes;
    Progress progress;
    if (has_place) {
      transfer_->sink.placed(outcome.bytes);
      place_left_bytes_ -= outcome.bytes;
      if (place_left_bytes_ == 0) progress = succeed(false);
    } else {
      progress =
          parse({reinterpret_cast<const char*>(scratch.data()), outcome.bytes});
    }
    if (progress) return progress;
  } while (stream_.may_have_more() && turn_bytes < kMostBytesATurn);
  return std::nullopt;
}

auto DirectConnection::parse(std::string_view bytes) -> Progress {
  std::string joined;
  if (!unparsed_.empty()) {
    joined = std::exchange(unparsed_, {}).append(bytes);
    bytes = joined;
  }
  while (!bytes.empty()) {
    if (!parser_) parser_.emplace(transfer_->sink);
    const bool had_head = has_head();
    boost::beast::error_code failure;
    const std::size_t used = parser_->put(
        boost::asio::const_buffer(bytes.data(), bytes.size()), failure);
    bytes.remove_prefix(used);
    if (failure == beast::error::need_more) {
      unparsed_ = bytes;
      return std::nullopt;
    }
    if (parser_->is_refused()) {
      return Verdict{.reply = transfer_->sink.outcome()};
    }
    if (failure) {
      return fail(Error(ErrorCode::kUnavailable,
                        fmt::format("what came is no HTTP reply: {}; check "
                                    "that host and port are right",
                                    failure.message())));
    }
    if (!had_head && has_head()) {
      if (auto progress = begin_body(bytes)) return progress;
      if (place_left_bytes_ != 0) return std::nullopt;
    }
    if (parser_ && parser_->is_done()) return succeed(!bytes.empty());
  }
  return std::nullopt;
}

auto DirectConnection::begin_body(std::string_view& bytes) -> Progress {
  ReplySink& sink = transfer_->sink;
  if (sink.status() / 100 == 1) {
    parser_.reset();
    if (++interim_replies_ <= kMostInterimReplies) return std::nullopt;
    return fail(Error(ErrorCode::kUnavailable,
                      "interim replies without end instead of one"));
  }
  parser_->eager(true);
  const auto length = parser_->content_length();
  if (!length || parser_->is_done()) return std::nullopt;
  if (!sink.may_hold(*length)) return Verdict{.reply = sink.outcome()};
  if (!sink.goes_into_place()) return std::nullopt;
  // From here on the parser is out of the way.
  const std::string_view here = bytes.substr(0, *length);
  sink.hear_body(here);
  bytes.remove_prefix(here.size());
  place_left_bytes_ = *length - here.size();
  return place_left_bytes_ == 0 ? succeed(!bytes.empty()) : std::nullopt;
}

auto DirectConnection::over(IoStatus status) -> Progress {
  const bool has_begun = has_head() || !unparsed_.empty();
  if (is_reused_ && !has_begun && interim_replies_ == 0) {
    return Verdict{.reply = fail(last_error_)->reply, .was_stale = true};
  }
  const Error why =
      status == IoStatus::kFailed
          ? stream_.error()
          : Error(ErrorCode::kUnavailable, "the server closed the connection");
  if (!has_head()) return fail(why);
  if (status == IoStatus::kEnd && place_left_bytes_ == 0) {
    boost::beast::error_code failure;
    parser_->put_eof(failure);
    if (!failure) return succeed(true);
  }
  return Verdict{.reply = transfer_->sink.cut_short(why.message())};
}

auto DirectConnection::succeed(bool has_excess) -> Progress {
  return Verdict{.reply = transfer_->sink.outcome(),
                 .can_keep = !has_excess && parser_->keep_alive()};
}

auto DirectConnection::fail(const Error& error) const -> Progress {
  return Verdict{.reply = transfer_->error(error.code(), error.message())};
}

}  // namespace leat
