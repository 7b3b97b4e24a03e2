#include "leat/store/http/direct_connection.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "leat/base/buffer.h"
#include "leat/base/check.h"
#include "leat/base/errors.h"

namespace leat {
namespace {

/// How long the first address has before one of the other family is tried
/// (RFC 8305 recommends 250 ms between attempts).
constexpr std::chrono::milliseconds kFirstAttempt{250};

/// How long one attempt to connect may take. Linux resends a first packet after
/// 7 s and then 11 or 15 s; new attempts send one each second. A server whose
/// queue of connections was full is then reached soon after it has room.
constexpr std::chrono::seconds kMostAttempt{2};

/// The most bytes that one connection reads before the others have their turn.
constexpr std::size_t kMostBytesATurn = 1 << 20;

/// Room for heads, and for bodies that have no place.
constexpr std::size_t kScratchBytes = 4 * 1024;

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

auto DirectConnection::carry(Transfer& transfer, std::string head,
                             TimePoint now) -> Progress {
  LEAT_CHECK(transfer_ == nullptr);
  transfer_ = &transfer;
  transfer.sink.open(transfer.submission.request);
  head_ = std::move(head);
  sent_bytes_ = 0;
  begun_at_ = now;
  reader_.open(transfer.sink, transfer.submission.request.method == "HEAD");
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

bool DirectConnection::starves(TimePoint now) const {
  return transfer_ != nullptr && replies_.count == 0 && !reader_.has_begun() &&
         !plan_.target.is_tls && now - begun_at_ >= kStarvesAfter;
}

TimePoint DirectConnection::deadline() const {
  return has_connected() ? transfer_->watch.deadline() : attempt_until_;
}

auto DirectConnection::check(TimePoint now) -> Progress {
  if (now < deadline()) return std::nullopt;
  if (has_connected()) {
    const auto lateness = transfer_->watch.check(now);
    if (!lateness) return std::nullopt;
    bench(now);
    return fail(Error(ErrorCode::kDeadlineExceeded, *lateness));
  }
  bench(now);
  last_error_ = Error(ErrorCode::kDeadlineExceeded,
                      "the server does not answer; check the network, and that "
                      "host and port are right");
  // An address is not to blame for time in which this process did not run.
  if (state_ == State::kConnecting) {
    plan_.connect_until += now - attempt_until_;
    if (next_address_ < plan_.addresses.size()) return try_next_address(now);
    if (now < plan_.connect_until) {
      next_address_ = 0;
      return try_next_address(now);
    }
  }
  if (now >= plan_.connect_until) return fail(last_error_);
  return try_next_address(now);
}

void DirectConnection::bench(TimePoint now) {
  plan_.bench->put(address().text, plan_.target.port, now);
}

auto DirectConnection::try_next_address(TimePoint now) -> Progress {
  while (next_address_ < plan_.addresses.size()) {
    close_socket();
    const HostAddress& address = plan_.addresses[next_address_++];
    auto opened = Stream::open(address, plan_.target.port);
    if (!opened) {
      last_error_ = opened.error();
      if (last_error_.code() == ErrorCode::kResourceExhausted) break;
      bench(now);
      continue;
    }
    stream_ = *std::move(opened);
    state_ = State::kConnecting;
    sockets_.opened(stream_.fd(), *this);
    sockets_.watch(stream_.fd(), EPOLLOUT);
    const auto left = static_cast<long>(plan_.addresses.size() - next_address_);
    Nanoseconds patience = std::min<Nanoseconds>(
        (plan_.connect_until - now) / (left + 1), kMostAttempt);
    if (next_address_ == 1 && left != 0 &&
        plan_.addresses[1].address.ss_family != family()) {
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
    bench(now);
    return try_next_address(now);
  }
  attempt_until_ = plan_.connect_until;
  if (!plan_.target.is_tls) return send_head(now);
  const ConnectTarget& to = plan_.target;
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
  transfer_->watch.sent(now);
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
  std::array<std::byte, kScratchBytes> scratch;
  std::size_t turn_bytes = 0;
  do {
    const std::span<std::byte> place = reader_.place();
    const IoOutcome outcome =
        stream_.read(place.empty() ? std::span<std::byte>(scratch) : place);
    if (outcome.status != IoStatus::kDone) return wait_for(outcome.status);
    turn_bytes += outcome.bytes;
    transfer_->watch.received(outcome.bytes, now);
    const auto step =
        place.empty()
            ? reader_.take(as_text(std::span(scratch).first(outcome.bytes)))
            : reader_.placed(outcome.bytes);
    if (step != ReplyReader::Step::kMore) return ended(step);
  } while (stream_.may_have_more() && turn_bytes < kMostBytesATurn);
  return std::nullopt;
}

auto DirectConnection::ended(ReplyReader::Step step) -> Progress {
  if (step == ReplyReader::Step::kBroken) {
    return fail(unavailable(
        "what came is no HTTP reply: {}; check that host and port are right, "
        "and write https:// in the place of http:// if the port speaks TLS",
        reader_.why()));
  }
  ++replies_.count;
  replies_.last_at = transfer_->watch.last_byte_at();
  replies_.last_took = replies_.last_at - begun_at_;
  Result<HttpReply> reply = transfer_->sink.outcome();
  if (reply) {
    reply->until_first_byte = transfer_->watch.first_byte_at() - begun_at_;
    reply->until_last_byte = transfer_->watch.last_byte_at() - begun_at_;
  }
  return Verdict{
      .reply = std::move(reply),
      .can_keep = step == ReplyReader::Step::kDone && reader_.can_keep()};
}

auto DirectConnection::over(IoStatus status) -> Progress {
  if (is_reused_ && !reader_.has_begun()) {
    return Verdict{.reply = fail(last_error_)->reply, .was_stale = true};
  }
  const bool may_speak_tls = replies_.count == 0 && !plan_.target.is_tls;
  const Error why =
      status == IoStatus::kFailed ? stream_.error()
      : may_speak_tls && !reader_.has_begun()
          ? unavailable(
                "the server closed the connection without an answer; if the "
                "port speaks TLS, write https:// in the place of http://")
          : unavailable("the server closed the connection");
  if (!reader_.has_head()) return fail(why);
  if (status == IoStatus::kEnd && reader_.end() == ReplyReader::Step::kDone) {
    return ended(ReplyReader::Step::kDone);
  }
  return Verdict{.reply = transfer_->sink.cut_short(why.message())};
}

auto DirectConnection::fail(const Error& error) const -> Progress {
  return Verdict{.reply = transfer_->error(error.code(), error.message())};
}

}  // namespace leat
