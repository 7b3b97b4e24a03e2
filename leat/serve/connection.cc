// One connection of a server.
//
// A request is read whole, then answered, then the next is read:
//
//   read ─▶ parse ─▶ on_request ─▶ ReplySender ─▶ read …
//
// One thing is under way at a time, so there is no lock.

#include "leat/serve/connection.h"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <type_traits>
#include <utility>
#include <vector>

#include "leat/serve/receive.h"
#include "leat/serve/reply_sender.h"
#include "leat/serve/request_parser.h"

namespace leat {
namespace {

namespace asio = boost::asio;
using Failure = boost::system::error_code;

constexpr std::size_t kReadBytes = 16 << 10;
/// For bodies; a line within a body (the size of a chunk) that is longer is
/// refused.
constexpr std::size_t kMostReadBytes = 256 << 10;
/// A client that goes on sending after its reply is not listened to for longer.
constexpr std::size_t kMostDrainBytes = 4 << 20;

/// Bytes that were read and not yet parsed: those from `begin` to `end`.
struct ReadBuffer {
  std::vector<char> bytes = std::vector<char>(kReadBytes);
  std::size_t begin = 0;
  std::size_t end = 0;

  bool is_empty() const { return begin == end; }
  std::span<const char> unread() const {
    return std::span(bytes).subspan(begin, end - begin);
  }
  std::span<char> room() { return std::span(bytes).subspan(end); }
  void grow_to(std::size_t size) {
    if (bytes.size() < size) bytes.resize(size);
  }
  /// False if the unread bytes have become too many.
  bool make_room() {
    if (is_empty()) begin = end = 0;
    if (end < bytes.size()) return true;
    if (begin > 0) {
      std::copy(bytes.begin() + long(begin), bytes.begin() + long(end),
                bytes.begin());
      end -= std::exchange(begin, 0);
      return true;
    }
    if (bytes.size() >= kMostReadBytes) return false;
    bytes.resize(bytes.size() * 2);
    return true;
  }
};

template <class Stream>
class Connection final
    : public ServerConnection,
      public ReplyOwner,
      public std::enable_shared_from_this<Connection<Stream>>,
      private RequestEvents {
  static constexpr bool kIsTls = std::is_same_v<Stream, TlsStream>;

 public:
  template <class... Args>
  Connection(const std::shared_ptr<ServerLoop>& loop,
             std::shared_ptr<ServerShared> shared, Args&&... args)
      : loop_(*loop),
        weak_loop_(loop),
        shared_(std::move(shared)),
        stream_(std::forward<Args>(args)...),
        sender_(stream_, loop->loop, *shared_, *this) {
    loop_.connections.insert(this);
    MutexLock lock(shared_->mutex);
    ++shared_->open;
  }

  ~Connection() override {
    exchange_.reset();
    loop_.connections.erase(this);
    MutexLock lock(shared_->mutex);
    --shared_->open;
    shared_->changed.notify_all();
  }

  void start() {
    owing_since_ = received_at_ = SteadyClock().now();
    Failure ignored;
    socket().set_option(asio::ip::tcp::no_delay(true), ignored);
    socket().non_blocking(true, ignored);
    if constexpr (kIsTls) {
      stream_.async_handshake(
          asio::ssl::stream_base::server,
          [self = this->shared_from_this()](const Failure& failure) {
            if (!failure) self->next_request();
          });
    } else {
      note_arrivals(socket().native_handle());
      next_request();
    }
  }

  void close_when_idle() override {
    closes_ = true;
    if (!exchange_) close_now();
  }

  void close_now() override {
    closes_ = true;
    Failure ignored;
    socket().close(ignored);
    const auto last = std::move(awaiting_reply_);
  }

  void close_if_owing_since(TimePoint then) override {
    if (owing_since_ < then) close_now();
  }

  TimePoint last_heard() const override { return received_at_; }

 private:
  LoopSocket& socket() {
    if constexpr (kIsTls) {
      return stream_.next_layer();
    } else {
      return stream_;
    }
  }

  // Reading.

  void next_request() {
    parser_.emplace(static_cast<RequestEvents&>(*this));
    if (closes_) return close_now();
    if (in_.is_empty()) return read();
    // The next request is pipelined. It is not parsed from here, or a client
    // could make the stack as deep as it likes.
    asio::post(socket().get_executor(),
               [self = this->shared_from_this()] { self->parse(); });
  }

  void read() {
    if (!in_.make_room()) return refuse();
    if constexpr (kIsTls) {
      stream_.async_read_some(
          asio::buffer(in_.room().data(), in_.room().size()),
          [self = this->shared_from_this()](const Failure& failure,
                                            std::size_t bytes) {
            if (failure) return;  // The last reference goes, and closes.
            self->on_read({static_cast<ssize_t>(bytes), SteadyClock().now()});
          });
    } else {
      socket().async_wait(
          LoopSocket::wait_read,
          [self = this->shared_from_this()](const Failure& failure) {
            if (!failure) self->receive_now();
          });
    }
  }

  void receive_now() {
    const Received received = receive(socket().native_handle(), in_.room());
    if (received.bytes > 0) return on_read(received);
    const bool is_spurious =
        received.bytes < 0 &&
        (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
    if (is_spurious) read();
  }

  void on_read(const Received& received) {
    in_.end += static_cast<std::size_t>(received.bytes);
    received_at_ = received.at;
    parse();
  }

  void parse() {
    Failure failure;
    while (!in_.is_empty() && !parser_->is_done()) {
      const std::size_t used = parser_->put(
          asio::buffer(in_.unread().data(), in_.unread().size()), failure);
      in_.begin += used;
      if (failure || used == 0) break;
    }
    if (failure && failure != boost::beast::http::error::need_more) {
      return refuse();
    }
    if (parser_->is_done()) return on_whole_request();
    // For a head: the time since it began. For a body: the time since its last
    // bytes came.
    if (parser_->is_header_done() || owing_since_ == TimePoint::max()) {
      owing_since_ = received_at_;
    }
    if (parser_->is_header_done() && !std::exchange(is_past_head_, true)) {
      // A body follows: let it come in larger pieces.
      in_.grow_to(kMostReadBytes);
      if (expects_continue()) return answer_expectation();
    }
    read();
  }

  // RequestEvents.
  void on_head() override {
    exchange_ = shared_->service.begin(parser_->head());
  }
  void on_body(std::span<const std::byte> piece) override {
    exchange_->on_body(piece);
  }

  bool expects_continue() const {
    return parser_->head().header("expect") == "100-continue";
  }

  void answer_expectation() {
    if (!exchange_->wants_body()) {
      closes_ = true;  // Nobody can tell whether the body comes anyway.
      return on_whole_request();
    }
    is_inviting_ = true;
    Reply invitation;
    invitation.status = 100;
    sender_.send(std::move(invitation), {.arrived = received_at_});
  }

  void on_whole_request() {
    arrived_ = received_at_;
    owing_since_ = TimePoint::max();
    is_past_head_ = false;
    if (in_.bytes.size() > kReadBytes && in_.is_empty()) in_ = ReadBuffer();
    awaiting_reply_ = this->shared_from_this();
    exchange_->on_request([weak = this->weak_from_this(),
                           loop = weak_loop_.lock()](Reply reply) mutable {
      take_reply(weak, loop, std::move(reply));
    });
  }

  static void take_reply(const std::weak_ptr<Connection>& weak,
                         const std::shared_ptr<ServerLoop>& loop, Reply reply) {
    const auto executor = loop->loop.context().get_executor();
    if (executor.running_in_this_thread()) {
      if (const auto self = weak.lock()) self->on_reply(std::move(reply));
      return;
    }
    // Only the loop's thread may hold, and so destroy, a connection.
    asio::post(executor, [weak, reply = std::move(reply)]() mutable {
      if (const auto self = weak.lock()) self->on_reply(std::move(reply));
    });
  }

  void refuse() {
    exchange_.reset();
    closes_ = true;
    Reply refusal;
    refusal.status = 400;
    sender_.send(std::move(refusal),
                 {.arrived = received_at_, .keeps_alive = false});
  }

  // Replying.

  void on_reply(Reply reply) {
    const auto self = std::move(awaiting_reply_);
    if (!self) return;  // A second reply, or the connection was closed.
    if (reply.ending != Ending::kWhole || !parser_->keep_alive()) {
      closes_ = true;
    }
    sender_.send(std::move(reply),
                 {.arrived = arrived_,
                  .keeps_alive = !closes_,
                  .wants_body = parser_->head().method != "HEAD"});
  }

  std::shared_ptr<void> keep() override { return this->shared_from_this(); }

  void on_reply_over(ReplyEnd end, const SentReply& sent) override {
    const bool was_invitation = std::exchange(is_inviting_, false);
    if (was_invitation && end == ReplyEnd::kSent) return read();
    if (exchange_) {
      if (!was_invitation) exchange_->on_sent(sent);
      exchange_.reset();
    }
    switch (end) {
      case ReplyEnd::kSent:
        return finish_sending();
      case ReplyEnd::kStall:
        return drain();
      case ReplyEnd::kReset: {
        Failure ignored;
        socket().set_option(asio::socket_base::linger(true, 0), ignored);
        return close_now();
      }
      case ReplyEnd::kFailed:
        return close_now();
    }
  }

  void finish_sending() {
    if (!closes_) return next_request();
    owing_since_ = SteadyClock().now();
    // Not closed at once: bytes that the client has sent and nobody has read
    // would turn the close into a reset, and the reply might be lost.
    Failure ignored;
    socket().shutdown(LoopSocket::shutdown_send, ignored);
    drain();
  }

  /// Reads and forgets until the client leaves.
  void drain() {
    in_.begin = in_.end = 0;
    socket().async_read_some(
        asio::buffer(in_.bytes),
        [self = this->shared_from_this()](const Failure& failure,
                                          std::size_t bytes) {
          self->drained_bytes_ += bytes;
          if (!failure && self->drained_bytes_ < kMostDrainBytes) {
            self->drain();
          }
        });
  }

  ServerLoop& loop_;
  const std::weak_ptr<ServerLoop> weak_loop_;  // Weak: the loop holds us.
  const std::shared_ptr<ServerShared> shared_;
  Stream stream_;
  ReplySender<Stream> sender_;

  ReadBuffer in_;
  std::size_t drained_bytes_ = 0;

  std::optional<RequestParser> parser_;
  std::unique_ptr<Exchange>
      exchange_;  // Before parser_ in death: lent its head.
  bool is_past_head_ = false;
  bool is_inviting_ = false;  // With 100 Continue.
  bool closes_ = false;       // After the reply that is being made.
  // The time since when the client owes us the rest of a request, or owes us
  // its leave.
  TimePoint owing_since_ = TimePoint::max();
  TimePoint received_at_{};  // The time of the last bytes read, of any kind.
  TimePoint arrived_{};      // The request that is being answered.
  // Keeps this alive while only the service knows of it.
  std::shared_ptr<Connection> awaiting_reply_;
};

}  // namespace

void start_connection(LoopSocket socket,
                      const std::shared_ptr<ServerLoop>& loop,
                      const std::shared_ptr<ServerShared>& shared) {
  if (shared->tls) {
    std::make_shared<Connection<TlsStream>>(loop, shared, std::move(socket),
                                            *shared->tls)
        ->start();
  } else {
    std::make_shared<Connection<LoopSocket>>(loop, shared, std::move(socket))
        ->start();
  }
}

}  // namespace leat
