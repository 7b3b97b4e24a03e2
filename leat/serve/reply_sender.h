// The half of a connection that answers: waits until a reply is due, and sends
// it at the rates of the server. Internal to serve/: includes asio.
#pragma once
#include <boost/asio/ssl/stream.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "leat/serve/connection.h"

namespace leat {

using TlsStream = boost::asio::ssl::stream<LoopSocket>;

/// How the sending of a reply came to its end.
enum class ReplyEnd : std::uint8_t {
  kSent,    ///< All of it has left that should.
  kStall,   ///< As kSent, and the client is to wait for the rest in vain.
  kReset,   ///< Nothing has left: the connection is to be reset.
  kFailed,  ///< The client has gone, or the file was cut.
};

/// The side that a ReplySender sends for. Threads: the loop's.
class ReplyOwner {
 public:
  virtual ~ReplyOwner() = default;
  /// Keeps the owner, and so its sender, alive while the result is held.
  virtual std::shared_ptr<void> keep() = 0;
  /// The sender may be given the next reply from here.
  virtual void on_reply_over(ReplyEnd end, const SentReply& sent) = 0;
};

/// The properties of a request that its reply depends on.
struct ReplyTo {
  TimePoint arrived{};  ///< The request's last byte.
  bool keeps_alive = true;
  bool wants_body = true;  ///< False for HEAD.
};

/// Sends one reply at a time.
///
/// The sender prepares a reply when it is given, before it is due: it makes the
/// head and reads a small body. A due reply then costs one system call, and the
/// work after it waits until nothing else is due (see Delayed). So replies that
/// are due together are late by little more than their writes.
///
/// Threads:  the loop's.
/// Lifetime: as its owner, which what is under way keeps alive.
template <class Stream>
class ReplySender final : private Delayed {
 public:
  /// `stream`, `loop` and `shared` outlive it.
  ReplySender(Stream& stream, EventLoop& loop, ServerShared& shared,
              ReplyOwner& owner);

  /// Sends `reply` once its delay is over.
  /// REQUIRES: the reply before it is over.
  void send(Reply reply, const ReplyTo& to);

 private:
  enum class Sent : std::uint8_t { kNow, kLater, kFailed };

  void on_due() override;
  void after_due() override { tell_end(); }

  void write_head(const ReplyTo& to);
  void begin();
  void send_pieces();
  void send_piece_and_more();
  std::size_t next_piece_bytes() const;
  bool is_piece_flipped() const;
  bool has_to_wait_for_rate();
  bool read_piece();
  Sent send_piece();
  Sent write_out();
  void on_piece_out();
  Sent send_from_file();
  Sent wait_to_write();
  Sent fail();
  void note_first_byte();
  void tell_end();

  std::shared_ptr<Delayed> keep();

  Stream& stream_;
  EventLoop& loop_;
  ServerShared& shared_;
  ReplyOwner& owner_;
  std::optional<RateLimit> link_;

  Reply reply_;
  TimePoint due_{};  // When the first byte is to leave.
  bool has_begun_ = false;
  std::optional<Nanoseconds> lateness_;  // Once the first byte has left.
  std::optional<ReplyEnd> end_;          // Until the owner is told.

  std::string out_;  // The head, and bytes of the body, not yet written.
  std::uint64_t limit_bytes_ = 0;  // As much of the body as will be sent.
  std::uint64_t sent_bytes_ = 0;
  std::size_t piece_bytes_ = 0;  // The bytes of the body that are on their way.
  bool is_piece_read_ = false;   // Those are in out_.
  TimePoint piece_due_{};        // When the rates let the last piece leave.
};

extern template class ReplySender<LoopSocket>;
extern template class ReplySender<TlsStream>;

}  // namespace leat
