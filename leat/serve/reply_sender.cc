// How a reply leaves.
//
//   send ─▶ head and small body into out_ ─▶ delay ─▶ piece ─▶ piece … ─▶ end
//                                                  └─ rate ─┘
//
// A plain socket is written at once; the sender waits for it only when its
// buffer is full. Large files go by sendfile. Waits for a time (the delay, a
// rate) take place in the EventLoop.

#include "leat/serve/reply_sender.h"

#include <sys/sendfile.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <cerrno>
#include <type_traits>
#include <utility>

#include "leat/serve/reply_text.h"

namespace leat {
namespace {

namespace asio = boost::asio;
using Failure = boost::system::error_code;

/// Files up to this size are read and sent with the head in one write.
constexpr std::size_t kInlineBytes = 64 << 10;
/// And up to this size they are read while the reply waits; more would be a lot
/// of memory where ten thousand wait.
constexpr std::size_t kAheadBytes = 16 << 10;
constexpr std::size_t kPieceBytes = 256 << 10;
/// As much as one connection sends before it lets the others run.
constexpr std::size_t kTurnBytes = 1 << 20;
/// A sender that was held up for longer, by a slow client, has lost the time.
constexpr Nanoseconds kMostCatchUp = std::chrono::milliseconds(50);

constexpr Nanoseconds kTrickle = std::chrono::seconds(1);

constexpr bool has_no_body(int status) {
  return status < 200 || status == 204 || status == 304;
}

/// True where the bytes that are sent are the bytes of the stream.
template <class Stream>
constexpr bool kIsPlain = std::is_same_v<Stream, LoopSocket>;

}  // namespace

template <class Stream>
ReplySender<Stream>::ReplySender(Stream& stream, EventLoop& loop,
                                 ServerShared& shared, ReplyOwner& owner)
    : stream_(stream), loop_(loop), shared_(shared), owner_(owner) {
  if (shared_.connection_bytes_per_second > 0) {
    link_.emplace(shared_.connection_bytes_per_second);
  }
}

template <class Stream>
std::shared_ptr<Delayed> ReplySender<Stream>::keep() {
  return {owner_.keep(), this};
}

// Before it is due.

template <class Stream>
void ReplySender<Stream>::send(Reply reply, const ReplyTo& to) {
  reply_ = std::move(reply);
  due_ = to.arrived + reply_.delay;
  has_begun_ = false;
  lateness_.reset();
  sent_bytes_ = 0;
  is_piece_read_ = false;
  write_head(to);
  if (reply_.delay > Nanoseconds(0) && due_ > SteadyClock().now()) {
    piece_bytes_ = next_piece_bytes();
    if (piece_bytes_ <= kAheadBytes) (void)read_piece();  // Or when it is due.
    return loop_.at(due_, keep());
  }
  begin();
  tell_end();
}

template <class Stream>
void ReplySender<Stream>::write_head(const ReplyTo& to) {
  const std::uint64_t body_bytes =
      reply_.file ? reply_.file->size_bytes : reply_.body.size();
  const bool has_body = !has_no_body(reply_.status);
  ReplyHead head{.status = reply_.status,
                 .headers = reply_.headers,
                 .content_length = body_bytes,
                 .keeps_alive = to.keeps_alive};
  if (!has_body) head.content_length.reset();
  out_.clear();
  append_head(out_, head);
  limit_bytes_ = has_body && to.wants_body ? body_bytes : 0;
  if (reply_.ending != Ending::kWhole && reply_.ending != Ending::kTrickle) {
    limit_bytes_ /= 2;
    if (limit_bytes_ == 0) out_.resize(out_.size() / 2);
  }
}

/// Appends the piece to `out_`. False if the file has been cut since it was
/// opened.
template <class Stream>
bool ReplySender<Stream>::read_piece() {
  const std::size_t before = out_.size();
  if (!reply_.file) {
    out_.append(reply_.body, sent_bytes_, piece_bytes_);
    if (is_piece_flipped())
      out_[before + *reply_.flipped_byte - sent_bytes_] ^= 1;
    return is_piece_read_ = true;
  }
  out_.resize(before + piece_bytes_);
  std::size_t done = 0;
  while (done < piece_bytes_) {
    const ssize_t got =
        ::pread(reply_.file->file->descriptor(), out_.data() + before + done,
                piece_bytes_ - done,
                static_cast<off_t>(reply_.file->offset + sent_bytes_ + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      out_.resize(before);
      return false;
    }
    done += static_cast<std::size_t>(got);
  }
  if (is_piece_flipped())
    out_[before + *reply_.flipped_byte - sent_bytes_] ^= 1;
  return is_piece_read_ = true;
}

/// True if the byte that is to be wrong is in the piece.
template <class Stream>
bool ReplySender<Stream>::is_piece_flipped() const {
  return reply_.flipped_byte && *reply_.flipped_byte >= sent_bytes_ &&
         *reply_.flipped_byte - sent_bytes_ < piece_bytes_;
}

// When it is due.

template <class Stream>
void ReplySender<Stream>::on_due() {
  if (has_begun_) {
    send_piece_and_more();
  } else {
    begin();
  }
}

template <class Stream>
void ReplySender<Stream>::begin() {
  has_begun_ = true;
  if (reply_.ending == Ending::kReset) {
    note_first_byte();
    end_ = ReplyEnd::kReset;
    return;
  }
  piece_due_ = SteadyClock().now();
  send_pieces();
}

template <class Stream>
void ReplySender<Stream>::send_pieces() {
  std::size_t in_this_turn = 0;
  do {
    if (sent_bytes_ == limit_bytes_ && out_.empty()) {
      end_ =
          reply_.ending == Ending::kStall ? ReplyEnd::kStall : ReplyEnd::kSent;
      return;
    }
    piece_bytes_ = next_piece_bytes();
    if (has_to_wait_for_rate()) return;
    if (in_this_turn > kTurnBytes) {
      return asio::post(stream_.get_executor(), [this, kept = keep()] {
        send_piece_and_more();
        tell_end();
      });
    }
    in_this_turn += piece_bytes_ + 1;
  } while (send_piece() == Sent::kNow);
}

template <class Stream>
void ReplySender<Stream>::send_piece_and_more() {
  if (send_piece() == Sent::kNow) send_pieces();
}

template <class Stream>
std::size_t ReplySender<Stream>::next_piece_bytes() const {
  std::uint64_t most = reply_.ending == Ending::kTrickle ? 1 : kPieceBytes;
  if (reply_.is_shaped) {
    if (link_) most = std::min<std::uint64_t>(most, link_->piece_bytes());
    if (shared_.total) {
      most = std::min<std::uint64_t>(most, shared_.total->piece_bytes());
    }
  }
  return std::min(most, limit_bytes_ - sent_bytes_);
}

/// True if the piece was put off until the rates have room for it.
template <class Stream>
bool ReplySender<Stream>::has_to_wait_for_rate() {
  if (!reply_.is_shaped || piece_bytes_ == 0) return false;
  if (reply_.ending == Ending::kTrickle && sent_bytes_ > 0) {
    loop_.at(SteadyClock().now() + kTrickle, keep());
    return true;
  }
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
  if (!lateness_) due_ = piece_due_;
  loop_.at(piece_due_, keep());
  return true;
}

/// Sends the head if it has not left, and `piece_bytes_` of the body.
template <class Stream>
auto ReplySender<Stream>::send_piece() -> Sent {
  Sent sent = Sent::kFailed;
  if (kIsPlain<Stream> && reply_.file && piece_bytes_ > kInlineBytes &&
      !is_piece_flipped()) {
    sent = send_from_file();
  } else if (is_piece_read_ || read_piece()) {
    sent = write_out();
  } else {
    sent = fail();
  }
  note_first_byte();
  return sent;
}

/// kNow: the piece has left; kLater: the rest goes on from a handler.
template <class Stream>
auto ReplySender<Stream>::write_out() -> Sent {
  std::size_t done = 0;
  if constexpr (kIsPlain<Stream>) {
    Failure failure;
    done = stream_.write_some(asio::buffer(out_), failure);
    if (failure && failure != asio::error::would_block) return fail();
    if (done == out_.size()) {
      on_piece_out();
      return Sent::kNow;
    }
  }
  asio::async_write(stream_,
                    asio::buffer(out_.data() + done, out_.size() - done),
                    [this, kept = keep()](const Failure& failure, std::size_t) {
                      if (failure) {
                        (void)fail();
                      } else {
                        on_piece_out();
                        send_pieces();
                      }
                      tell_end();
                    });
  return Sent::kLater;
}

template <class Stream>
void ReplySender<Stream>::on_piece_out() {
  out_.clear();
  is_piece_read_ = false;
  sent_bytes_ += std::exchange(piece_bytes_, 0);
}

template <class Stream>
auto ReplySender<Stream>::send_from_file() -> Sent {
  const int socket = stream_.lowest_layer().native_handle();
  while (!out_.empty()) {
    const ssize_t put =
        ::send(socket, out_.data(), out_.size(), MSG_MORE | MSG_NOSIGNAL);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return wait_to_write();
    out_.erase(0, static_cast<std::size_t>(put));
  }
  while (piece_bytes_ > 0) {
    auto offset = static_cast<off_t>(reply_.file->offset + sent_bytes_);
    const ssize_t put = ::sendfile(socket, reply_.file->file->descriptor(),
                                   &offset, piece_bytes_);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return wait_to_write();
    if (put == 0) return fail();  // The file was cut since it was opened.
    sent_bytes_ += static_cast<std::size_t>(put);
    piece_bytes_ -= static_cast<std::size_t>(put);
  }
  return Sent::kNow;
}

template <class Stream>
auto ReplySender<Stream>::wait_to_write() -> Sent {
  if (errno != EAGAIN && errno != EWOULDBLOCK) return fail();
  stream_.lowest_layer().async_wait(
      LoopSocket::wait_write, [this, kept = keep()](const Failure& failure) {
        // The rate was paid for this piece, though it is sent in two.
        if (failure) {
          (void)fail();
        } else if (send_from_file() == Sent::kNow) {
          send_pieces();
        }
        tell_end();
      });
  return Sent::kLater;
}

// Its end.

template <class Stream>
auto ReplySender<Stream>::fail() -> Sent {
  end_ = ReplyEnd::kFailed;
  return Sent::kFailed;
}

template <class Stream>
void ReplySender<Stream>::note_first_byte() {
  if (!lateness_) lateness_ = SteadyClock().now() - due_;
}

template <class Stream>
void ReplySender<Stream>::tell_end() {
  if (!end_) return;
  const ReplyEnd end = *std::exchange(end_, std::nullopt);
  const bool is_whole =
      end == ReplyEnd::kSent && reply_.ending == Ending::kWhole;
  reply_ = Reply();
  owner_.on_reply_over(end, {.body_bytes = sent_bytes_,
                             .lateness = lateness_.value_or(Nanoseconds(0)),
                             .is_whole = is_whole});
}

template class ReplySender<LoopSocket>;
template class ReplySender<TlsStream>;

}  // namespace leat
