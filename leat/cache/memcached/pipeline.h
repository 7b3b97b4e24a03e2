// Commands to one server, and its answers in the same order.
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
/// answers, with the meta commands (`mg`, `ms`, `md`) of its text protocol.
///
/// A find renews the value's time to live. A find without a hit claims the
/// value (memcached's `N` flag), so that of all who miss it one brings it and
/// the others hear kComing. Answers carry no names: the first belongs to the
/// first command. So a lost answer makes all later ones wrong, and receive()
/// then says so. A value goes from the bytes received to its destination, and
/// counts once its header and seal match the request.
///
/// It has no socket and no clock: tests and the fuzzer drive it with bytes.
/// Threads: one.
class PeerPipeline {
 public:
  /// `key` seals values.
  PeerPipeline(std::chrono::seconds ttl, const PeerKey& key)
      : ttl_(ttl), seal_(key) {}
  ~PeerPipeline() { give_up(); }
  PeerPipeline(const PeerPipeline&) = delete;
  PeerPipeline& operator=(const PeerPipeline&) = delete;

  void ask(const PeerOperationRef& operation);

  /// Called for each line of statistics, then with std::nullopt at their end.
  using HearStatistic = std::function<void(std::optional<std::string_view>)>;
  /// `command`: "stats" or "stats slabs". Sent before all that is still unsent.
  void ask_statistics(std::string_view command, HearStatistic hear);

  /// The bytes to send next; empty if none. Valid until the next call.
  std::span<const std::byte> to_send();
  /// The rest of what to_send() returned, and the requests for statistics.
  std::span<const std::byte> half_sent() const {
    return as_bytes(std::string_view(outbox_).substr(outbox_sent_));
  }
  void sent(std::size_t bytes) { outbox_sent_ += bytes; }

  /// False if the server broke the protocol: give up and reconnect.
  bool receive(std::span<const std::byte> bytes);

  /// True if an answer is owed for a command that was sent, or if a command is
  /// half sent.
  bool is_owed() const { return !owed_.empty() || !half_sent().empty(); }
  /// The due time of the oldest operation that is not answered.
  std::optional<TimePoint> first_due() const;
  /// Size of the last item refused for lack of memory, reported once.
  std::optional<std::size_t> take_refusal();

  /// Answers everything with kUnreachable and starts over.
  void give_up();

 private:
  /// One piece of an operation; without an operation: statistics.
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
  PeerAnswer judge(const Command& command);
  bool settle_front(PeerAnswer answer);

  const std::chrono::seconds ttl_;
  PieceSeal seal_;
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
  PeerAnswer instead_ = PeerAnswer::kWrong;  // If it has another size.
};

}  // namespace leat
