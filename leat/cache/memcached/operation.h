// A request to one server, with the callback for its answer.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "leat/base/buffer.h"
#include "leat/base/clock.h"
#include "leat/base/hash.h"
#include "leat/cache/memcached/piece.h"

namespace leat {

/// A server's answer. If pieces differ, the greatest answer holds for all.
enum class PeerAnswer : std::uint8_t {
  kYes,          ///< Found whole, or stored, or dropped.
  kNo,           ///< Not there; the caller has to fetch it.
  kComing,       ///< Not there, and another client was told to bring it.
  kNoMemory,     ///< Refused: the server is full.
  kWrong,        ///< There, but not what was asked for: torn, or another value.
  kUnreachable,  ///< The server did not answer in time, or is being avoided.
};

struct PeerOperation;
using PeerOperationRef = std::shared_ptr<PeerOperation>;
using PeerDone = std::function<void(const PeerOperationRef&)>;

/// A find, an insert or a drop of one value; one command for each piece.
///
/// Threads: the connection's alone, once it was submitted.
struct PeerOperation {
  enum class Kind : std::uint8_t { kFind, kInsert, kDrop };

  Kind kind = Kind::kFind;
  Hash128 key;
  ValueSplit split;
  /// For a find: the buffer for the value, written to until `done` has run.
  std::span<std::byte> into{};
  /// For an insert.
  BufferRef value;
  /// Not sent before this time.
  TimePoint begins{};
  /// Given up at this time.
  TimePoint due{};
  /// Runs once for each time it was submitted; `answer` is the result.
  PeerDone done;

  PeerAnswer answer = PeerAnswer::kYes;
  std::uint32_t unanswered = 0;  ///< Pieces.
};

/// Notes the answer for one piece; after the last one, runs `done`.
inline void settle(const PeerOperationRef& operation, PeerAnswer answer) {
  operation->answer = std::max(operation->answer, answer);
  if (--operation->unanswered == 0) operation->done(operation);
}

/// Answers an operation of which nothing was sent.
inline void refuse(const PeerOperationRef& operation) {
  operation->unanswered = 1;
  settle(operation, PeerAnswer::kUnreachable);
}

}  // namespace leat
