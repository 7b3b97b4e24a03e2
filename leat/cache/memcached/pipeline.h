// Commands to one server in their order, and the answers in the same.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "leat/base/clock.h"
#include "leat/cache/memcached/operation.h"
#include "leat/cache/memcached/reply_parser.h"

namespace leat {

/// Turns operations into bytes for a memcached server, and its bytes into
/// answers, by the meta commands (`mg`, `ms`, `md`) of its text protocol.
///
/// A find renews the value's time to live. One that finds nothing claims the
/// value (memcached's `N` flag), so that of all that miss it one brings it and
/// the others hear kComing. Answers have no names: the first is the first
/// command's. So a lost answer makes all that follow wrong, and receive() then
/// says so. A value goes from the bytes received to its destination, and counts
/// once its header and checksum agree with the request.
///
/// No socket and no clock: tests and the fuzzer drive it with bytes.
/// Threads: one.
class PeerPipeline {
 public:
  explicit PeerPipeline(std::chrono::seconds ttl) : ttl_(ttl) {}
  ~PeerPipeline() { give_up(); }
  PeerPipeline(const PeerPipeline&) = delete;
  PeerPipeline& operator=(const PeerPipeline&) = delete;

  void ask(const PeerOperationRef& operation);

  /// One line of statistics, then std::nullopt at their end.
  using HearStatistic = std::function<void(std::optional<std::string_view>)>;
  /// `command`: "stats" or "stats slabs". Goes before all that is not yet sent.
  void ask_statistics(std::string_view command, HearStatistic hear);

  /// The bytes to send next; empty for nothing. Good until the next call.
  std::span<const std::byte> to_send();
  /// The rest of what to_send() gave, and the questions for statistics.
  std::span<const std::byte> half_sent() const {
    return as_bytes(std::string_view(outbox_).substr(outbox_sent_));
  }
  void sent(std::size_t bytes) { outbox_sent_ += bytes; }

  /// False if the server broke the protocol: give up and connect anew.
  bool receive(std::span<const std::byte> bytes);

  /// True if an answer is owed for a command that was sent, or a command is
  /// half sent.
  bool is_owed() const { return !owed_.empty() || !half_sent().empty(); }
  /// When the operation that was asked for first and is not answered is due.
  std::optional<TimePoint> first_due() const;
  /// Bytes of the last item that was refused for lack of memory, told once.
  std::optional<std::size_t> take_refusal();

  /// Answers all with kUnreachable, and begins anew.
  void give_up();

 private:
  /// One piece of an operation; without one: statistics.
  struct Command {
    PeerOperationRef operation;
    std::uint32_t piece = 0;
    HearStatistic hear{};
  };
  static constexpr std::size_t kOutboxBytes = 256 << 10;

  void append(const Command& command);
  bool hear(const ReplyEvent& event);
  bool hear_of(Command& command, const ReplyEvent& event);
  bool hear_statistic(Command& command, const ReplyEvent& event);
  void begin_value(const Command& command, const ReplyEvent& event);
  void take(const Command& command, std::span<const std::byte> bytes);
  PeerAnswer judge(const Command& command) const;
  bool settle_front(PeerAnswer answer);

  const std::chrono::seconds ttl_;
  std::deque<Command> waiting_;
  std::deque<Command> owed_;
  std::string outbox_;
  std::size_t outbox_sent_ = 0;
  MemcachedReplyParser parser_;
  std::optional<std::size_t> refusal_;

  // The header of the value that is coming.
  PieceHeader header_{};
  std::uint64_t taken_ = 0;
  bool is_of_another_size_ = false;
  PeerAnswer instead_ = PeerAnswer::kWrong;  // If it is of another size.
};

}  // namespace leat
