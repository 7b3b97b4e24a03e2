// One connection of a server.
//
// A request is read whole, then answered, then the next is read:
//
//   read ─▶ parse ─▶ on_request ─▶ delay ─▶ send head and pieces ─▶ read …
//
// One thing is under way at a time, so there is no lock. A plain socket is
// written at once and waited for only when its buffer is full; large files go
// by sendfile. What waits for a time (a delay, a rate) waits in the EventLoop.
//
// Longer than our files are: the halves of this machine share all their state.

#include "leat/serve/connection.h"

#include <sys/sendfile.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>
#include <cerrno>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "leat/serve/receive.h"
#include "leat/serve/reply_text.h"
#include "leat/serve/request_parser.h"

namespace leat {
namespace {

namespace asio = boost::asio;
using Failure = boost::system::error_code;
using TlsStream = asio::ssl::stream<LoopSocket>;

constexpr std::size_t kReadBytes = 16 << 10;
constexpr std::size_t kMostReadBytes = 256 << 10;
/// Files up to this size are read and sent with the head in one write.
constexpr std::size_t kInlineBytes = 64 << 10;
constexpr std::size_t kPieceBytes = 256 << 10;
/// As much as one connection sends before it lets the others run.
constexpr std::size_t kTurnBytes = 1 << 20;
/// A sender that was held up for longer, by a slow client, has lost the time.
constexpr Nanoseconds kMostCatchUp = std::chrono::milliseconds(50);
/// A client that goes on sending after its reply is not listened to for longer.
constexpr std::size_t kMostDrainBytes = 4 << 20;

constexpr bool has_no_body(int status) {
  return status < 200 || status == 204 || status == 304;
}

template <class Stream>
class Connection final
    : public ServerConnection,
      public Delayed,
      public std::enable_shared_from_this<Connection<Stream>>,
      private RequestEvents {
  static constexpr bool kIsTls = std::is_same_v<Stream, TlsStream>;
  enum class Sent : std::uint8_t { kNow, kLater, kFailed };

 public:
  template <class... Args>
  Connection(const std::shared_ptr<ServerLoop>& loop, ServerShared& shared,
             Args&&... args)
      : loop_(*loop),
        weak_loop_(loop),
        shared_(shared),
        stream_(std::forward<Args>(args)...),
        in_(kReadBytes) {
    loop_.connections.insert(this);
    MutexLock lock(shared_.mutex);
    ++shared_.open;
  }

  ~Connection() override {
    exchange_.reset();
    loop_.connections.erase(this);
    MutexLock lock(shared_.mutex);
    --shared_.open;
    shared_.changed.notify_all();
  }

  void start() {
    if (shared_.connection_bytes_per_second > 0) {
      link_.emplace(shared_.connection_bytes_per_second);
    }
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

  void on_due() override {
    if (is_sending_) {
      send_piece_and_more();
    } else {
      send_reply();
    }
  }

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
    is_sending_ = false;
    if (closes_) return close_now();
    if (in_begin_ == in_end_) return read();
    // Pipelined. Not from here, or a client could make the stack as deep as it
    // likes.
    asio::post(socket().get_executor(),
               [self = this->shared_from_this()] { self->parse(); });
  }

  void read() {
    if (in_begin_ == in_end_) in_begin_ = in_end_ = 0;
    if (in_end_ == in_.size()) make_room();
    if constexpr (kIsTls) {
      stream_.async_read_some(
          asio::buffer(in_.data() + in_end_, in_.size() - in_end_),
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
    const Received received =
        receive(socket().native_handle(), std::span(in_).subspan(in_end_));
    if (received.bytes > 0) return on_read(received);
    const bool is_spurious =
        received.bytes < 0 &&
        (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
    if (is_spurious) read();
  }

  void on_read(const Received& received) {
    in_end_ += static_cast<std::size_t>(received.bytes);
    received_at_ = received.at;
    parse();
  }

  void make_room() {
    if (in_begin_ > 0) {
      std::copy(in_.begin() + long(in_begin_), in_.begin() + long(in_end_),
                in_.begin());
      in_end_ -= std::exchange(in_begin_, 0);
    } else {
      in_.resize(in_.size() * 2);  // The parser ends this at 64 KiB.
    }
  }

  void parse() {
    Failure failure;
    while (in_begin_ < in_end_ && !parser_->is_done()) {
      const std::size_t used = parser_->put(
          asio::buffer(in_.data() + in_begin_, in_end_ - in_begin_), failure);
      in_begin_ += used;
      if (failure || used == 0) break;
    }
    if (failure && failure != boost::beast::http::error::need_more) {
      return refuse();
    }
    if (parser_->is_done()) return on_whole_request();
    if (parser_->is_header_done() && !std::exchange(is_past_head_, true)) {
      // A body follows: let it come in larger pieces.
      if (in_.size() < kMostReadBytes) in_.resize(kMostReadBytes);
      if (expects_continue()) return answer_expectation();
    }
    read();
  }

  // RequestEvents.
  void on_head() override {
    exchange_ = shared_.service.begin(parser_->head());
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
    out_ = "HTTP/1.1 100 Continue\r\n\r\n";
    write_out([](Connection& self) { self.read(); });
  }

  void on_whole_request() {
    arrived_ = received_at_;
    is_past_head_ = false;
    if (in_.size() > kReadBytes && in_begin_ == in_end_) {
      in_begin_ = in_end_ = 0;
      in_ = std::vector<char>(kReadBytes);
    }
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
    ReplyHead head{.status = 400,
                   .headers = {},
                   .content_length = 0,
                   .keeps_alive = false};
    out_.clear();
    append_head(out_, head);
    write_out([](Connection& self) { self.finish_sending(); });
  }

  // Replying.

  void on_reply(Reply reply) {
    const auto self = std::move(awaiting_reply_);
    if (!self) return;  // A second reply, or the connection was closed.
    reply_ = std::move(reply);
    due_ = arrived_ + reply_.delay;
    if (reply_.delay > Nanoseconds(0) && due_ > SteadyClock().now()) {
      loop_.loop.at(due_, self);
    } else {
      send_reply();
    }
  }

  void send_reply() {
    piece_due_ = SteadyClock().now();
    lateness_ = piece_due_ - due_;
    is_sending_ = true;
    sent_bytes_ = 0;
    if (reply_.ending == Ending::kReset) return reset();

    const std::uint64_t body_bytes =
        reply_.file ? reply_.file->size_bytes : reply_.body.size();
    if (reply_.ending != Ending::kWhole || !parser_->keep_alive()) {
      closes_ = true;
    }
    ReplyHead head{.status = reply_.status,
                   .headers = reply_.headers,
                   .content_length = body_bytes,
                   .keeps_alive = !closes_};
    if (has_no_body(reply_.status)) head.content_length.reset();
    out_.clear();
    append_head(out_, head);

    const bool sends_body =
        parser_->head().method != "HEAD" && !has_no_body(reply_.status);
    limit_bytes_ = sends_body ? body_bytes : 0;
    if (reply_.ending != Ending::kWhole) {
      limit_bytes_ /= 2;
      if (limit_bytes_ == 0) out_.resize(out_.size() / 2);
    }
    send_more();
  }

  void send_more() {
    std::size_t in_this_turn = 0;
    do {
      if (sent_bytes_ == limit_bytes_ && out_.empty()) return finish_reply();
      piece_bytes_ = next_piece_bytes();
      if (has_to_wait_for_rate()) return;
      if (in_this_turn > kTurnBytes) {
        return asio::post(
            socket().get_executor(),
            [self = this->shared_from_this()] { self->send_piece_and_more(); });
      }
      in_this_turn += piece_bytes_ + 1;
    } while (send_piece() == Sent::kNow);
  }

  void send_piece_and_more() {
    if (send_piece() == Sent::kNow) send_more();
  }

  std::size_t next_piece_bytes() const {
    std::uint64_t most = kPieceBytes;
    if (reply_.is_shaped) {
      if (link_) most = std::min<std::uint64_t>(most, link_->piece_bytes());
      if (shared_.total) {
        most = std::min<std::uint64_t>(most, shared_.total->piece_bytes());
      }
    }
    return std::min(most, limit_bytes_ - sent_bytes_);
  }

  /// True if the piece was put off until the rates have room for it.
  bool has_to_wait_for_rate() {
    if (!reply_.is_shaped || piece_bytes_ == 0) return false;
    if (!link_ && !shared_.total) return false;
    const TimePoint now = SteadyClock().now();
    const TimePoint ready = std::max(piece_due_, now - kMostCatchUp);
    piece_due_ = ready;
    if (link_) {
      piece_due_ = std::max(piece_due_, link_->reserve(piece_bytes_, ready));
    }
    if (shared_.total) {
      piece_due_ =
          std::max(piece_due_, shared_.total->reserve(piece_bytes_, ready));
    }
    if (piece_due_ <= now) return false;
    loop_.loop.at(piece_due_, this->shared_from_this());
    return true;
  }

  /// Sends the head if it has not left, and `piece_bytes_` of the body.
  Sent send_piece() {
    if constexpr (!kIsTls) {
      if (reply_.file && piece_bytes_ > kInlineBytes) return send_from_file();
    }
    if (!append_piece()) return fail();
    return write_out([](Connection& self) { self.on_piece_sent(); });
  }

  void on_piece_sent() {
    sent_bytes_ += std::exchange(piece_bytes_, 0);
    send_more();
  }

  bool append_piece() {
    if (piece_bytes_ == 0) return true;
    if (!reply_.file) {
      out_.append(reply_.body, sent_bytes_, piece_bytes_);
      return true;
    }
    const std::size_t head_bytes = out_.size();
    out_.resize(head_bytes + piece_bytes_);
    std::size_t done = 0;
    while (done < piece_bytes_) {
      const ssize_t got =
          ::pread(reply_.file->file->descriptor(),
                  out_.data() + head_bytes + done, piece_bytes_ - done,
                  static_cast<off_t>(reply_.file->offset + sent_bytes_ + done));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return false;  // The file was cut since it was opened.
      done += static_cast<std::size_t>(got);
    }
    return true;
  }

  /// Writes `out_` and clears it. kNow: it has left, and `then` is not called;
  /// kLater: `then` will be.
  Sent write_out(void (*then)(Connection&)) {
    std::size_t done = 0;
    if constexpr (!kIsTls) {
      Failure failure;
      done = socket().write_some(asio::buffer(out_), failure);
      if (failure && failure != asio::error::would_block) return fail();
      if (done == out_.size()) return sent_now(then);
    }
    asio::async_write(stream_,
                      asio::buffer(out_.data() + done, out_.size() - done),
                      [self = this->shared_from_this(), then](
                          const Failure& failure, std::size_t) {
                        if (failure) return (void)self->fail();
                        self->out_.clear();
                        then(*self);
                      });
    return Sent::kLater;
  }

  Sent sent_now(void (*then)(Connection&)) {
    out_.clear();
    if (!is_sending_) {
      then(*this);
      return Sent::kLater;
    }
    sent_bytes_ += std::exchange(piece_bytes_, 0);
    return Sent::kNow;
  }

  Sent send_from_file() {
    while (!out_.empty()) {
      const ssize_t put = ::send(socket().native_handle(), out_.data(),
                                 out_.size(), MSG_MORE | MSG_NOSIGNAL);
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) return wait_to_write();
      out_.erase(0, static_cast<std::size_t>(put));
    }
    while (piece_bytes_ > 0) {
      auto offset = static_cast<off_t>(reply_.file->offset + sent_bytes_);
      const ssize_t put =
          ::sendfile(socket().native_handle(), reply_.file->file->descriptor(),
                     &offset, piece_bytes_);
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) return wait_to_write();
      if (put == 0) return fail();  // The file was cut since it was opened.
      sent_bytes_ += static_cast<std::size_t>(put);
      piece_bytes_ -= static_cast<std::size_t>(put);
    }
    return Sent::kNow;
  }

  Sent wait_to_write() {
    if (errno != EAGAIN && errno != EWOULDBLOCK) return fail();
    socket().async_wait(
        LoopSocket::wait_write,
        [self = this->shared_from_this()](const Failure& failure) {
          if (failure) return (void)self->fail();
          // The rate was paid for this piece, though it is sent in two.
          if (self->send_from_file() == Sent::kNow) self->send_more();
        });
    return Sent::kLater;
  }

  // Ending.

  void report(bool is_whole) {
    if (!exchange_) return;
    exchange_->on_sent({.body_bytes = sent_bytes_,
                        .lateness = lateness_,
                        .is_whole = is_whole});
    exchange_.reset();
    reply_ = Reply();
  }

  Sent fail() {
    report(false);
    close_now();
    return Sent::kFailed;
  }

  void reset() {
    Failure ignored;
    socket().set_option(asio::socket_base::linger(true, 0), ignored);
    report(false);
    close_now();
  }

  void finish_reply() {
    const Ending ending = reply_.ending;
    report(ending == Ending::kWhole);
    if (ending == Ending::kStall) return drain();
    finish_sending();
  }

  void finish_sending() {
    if (!closes_) return next_request();
    // Not closed at once: what the client has sent and nobody has read would
    // turn the close into a reset, and the reply might be lost.
    Failure ignored;
    socket().shutdown(LoopSocket::shutdown_send, ignored);
    drain();
  }

  /// Reads and forgets until the client leaves.
  void drain() {
    in_begin_ = in_end_ = 0;
    socket().async_read_some(
        asio::buffer(in_), [self = this->shared_from_this()](
                               const Failure& failure, std::size_t bytes) {
          self->drained_bytes_ += bytes;
          if (!failure && self->drained_bytes_ < kMostDrainBytes) {
            self->drain();
          }
        });
  }

  ServerLoop& loop_;
  const std::weak_ptr<ServerLoop> weak_loop_;  // Weak: the loop holds us.
  ServerShared& shared_;
  Stream stream_;
  std::optional<RateLimit> link_;

  // The bytes read and not yet parsed are in_[in_begin_, in_end_).
  std::vector<char> in_;
  std::size_t in_begin_ = 0;
  std::size_t in_end_ = 0;
  std::size_t drained_bytes_ = 0;

  std::optional<RequestParser> parser_;
  std::unique_ptr<Exchange>
      exchange_;  // Before parser_ in death: lent its head.
  bool is_past_head_ = false;
  bool closes_ = false;      // After the reply that is being made.
  TimePoint received_at_{};  // The last bytes read, whatever they are of.
  TimePoint arrived_{};      // The request that is being answered.
  // Keeps this alive while only the service knows of it.
  std::shared_ptr<Connection> awaiting_reply_;

  Reply reply_;
  bool is_sending_ = false;
  TimePoint due_{};
  Nanoseconds lateness_{0};
  std::string out_;  // The head, and bytes of the body, not yet written.
  std::uint64_t limit_bytes_ = 0;  // As much of the body as will be sent.
  std::uint64_t sent_bytes_ = 0;
  std::size_t piece_bytes_ = 0;
  TimePoint piece_due_{};  // When the rates let the last piece leave.
};

}  // namespace

void start_connection(LoopSocket socket,
                      const std::shared_ptr<ServerLoop>& loop,
                      ServerShared& shared) {
  if (shared.tls) {
    std::make_shared<Connection<TlsStream>>(loop, shared, std::move(socket),
                                            *shared.tls)
        ->start();
  } else {
    std::make_shared<Connection<LoopSocket>>(loop, shared, std::move(socket))
        ->start();
  }
}

}  // namespace leat
