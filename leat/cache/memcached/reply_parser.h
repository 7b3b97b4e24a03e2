// Reads the replies of a memcached server, in any portions.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace leat {

/// The next thing that a server has said.
struct ReplyEvent {
  enum class Kind : std::uint8_t {
    kMore,           ///< Nothing yet: more bytes must come.
    kValue,          ///< A hit: `bytes` bytes of it follow as kBytes.
    kBytes,          ///< `payload`, some of a value.
    kValueEnd,       ///< The value has come whole.
    kMiss,           ///< EN or NF.
    kDone,           ///< HD: stored, deleted.
    kNotStored,      ///< NS or EX.
    kNoMemory,       ///< SERVER_ERROR out of memory ...
    kFailed,         ///< SERVER_ERROR of another kind: `text` says which.
    kStatistic,      ///< STAT: `text` is "name value".
    kStatisticsEnd,  ///< END
    kBroken,         ///< Not memcached's: the connection is of no more use.
  };
  Kind kind = Kind::kMore;
  std::uint64_t bytes = 0;
  /// For a value: there was none, and the asker is the one to bring it.
  bool is_won = false;
  std::span<const std::byte> payload{};
  std::string_view text{};  ///< Good until the next call.
};

/// A parser of the replies to the meta commands `mg`, `ms`, `md` and to
/// `stats`; memcached's doc/protocol.txt, "Meta Commands".
///
/// Bytes from outside: lines are at most kMostLineBytes, values at most
/// kMostValueBytes, and anything else ends in kBroken, for good.
///
/// Threads: one.
class MemcachedReplyParser {
 public:
  static constexpr std::size_t kMostLineBytes = 2048;
  static constexpr std::uint64_t kMostValueBytes = 16 << 20;

  /// Takes what it can from the front of `input`; called until kMore.
  ReplyEvent next(std::span<const std::byte>& input);

 private:
  enum class State : std::uint8_t { kLine, kValue, kTail, kBroken };

  ReplyEvent broken();
  ReplyEvent take_value(std::span<const std::byte>& input);
  ReplyEvent take_tail(std::span<const std::byte>& input);
  ReplyEvent take_line(std::span<const std::byte>& input);
  ReplyEvent read_line();

  State state_ = State::kLine;
  // Counts down the value, then the line end after it.
  std::uint64_t left_ = 0;
  std::string line_;
  bool is_line_whole_ = false;
};

}  // namespace leat
