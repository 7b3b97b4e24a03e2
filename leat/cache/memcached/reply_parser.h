// Reads the replies of a memcached server, in pieces of any size.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace leat {

/// The next event in a server's replies.
struct ReplyEvent {
  enum class Kind : std::uint8_t {
    kMore,           ///< Nothing yet: more bytes are needed.
    kValue,          ///< A hit: `bytes` bytes of it follow as kBytes.
    kBytes,          ///< `payload`, a part of a value.
    kValueEnd,       ///< The value is complete.
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
  /// For a value: it was missing, and this client is the one to bring it.
  bool is_won = false;
  std::span<const std::byte> payload{};
  std::string_view text{};  ///< Valid until the next call.
};

/// A parser of the replies to the meta commands `mg`, `ms`, `md` and to
/// `stats`; memcached's doc/protocol.txt, "Meta Commands".
///
/// Input is untrusted: lines are at most kMostLineBytes, values at most
/// kMostValueBytes, and anything else ends in kBroken, for good.
///
/// Threads: one.
class MemcachedReplyParser {
 public:
  static constexpr std::size_t kMostLineBytes = 2048;
  static constexpr std::uint64_t kMostValueBytes = 16 << 20;

  /// Consumes what it can of `input`'s front; call it until it returns kMore.
  ReplyEvent next(std::span<const std::byte>& input);

 private:
  enum class State : std::uint8_t { kLine, kValue, kTail, kBroken };

  ReplyEvent broken();
  ReplyEvent take_value(std::span<const std::byte>& input);
  ReplyEvent take_tail(std::span<const std::byte>& input);
  ReplyEvent take_line(std::span<const std::byte>& input);
  ReplyEvent read_line();

  State state_ = State::kLine;
  // The bytes left of the value, then of the line end after it.
  std::uint64_t left_ = 0;
  std::string line_;
  bool is_line_whole_ = false;
};

}  // namespace leat
