// Reads a reply as its bytes arrive. Internal to store/http: includes Beast.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "leat/store/http/reply_parser.h"
#include "leat/store/http/reply_sink.h"

namespace leat {

/// Reads one reply (RFC 9112) into a ReplySink, however the network splits it.
/// A body of known length that has a place should be received right there.
///
/// Threads: one.
class ReplyReader {
 public:
  enum class Step {
    kMore,     ///< The reply continues.
    kDone,     ///< ReplySink::outcome() has it.
    kRefused,  ///< The sink accepts no more: outcome() says why.
    kBroken,   ///< Not a valid reply: why() gives the reason.
  };

  /// `sink` must live until the next open() or the reader's end. The reply to a
  /// HEAD has no body, though its head tells the length of one.
  void open(ReplySink& sink, bool is_to_head = false);

  /// The place for the next bytes. If empty, put them anywhere and call take().
  std::span<std::byte> place() const;
  /// Call this after putting that many bytes at the front of place().
  Step placed(std::size_t bytes);
  /// Takes the next bytes while place() is empty.
  Step take(std::string_view bytes);
  /// Call this when the server has closed the connection properly.
  Step end();

  /// Whether any byte has come; whether the status and all headers have.
  bool has_begun() const;
  bool has_head() const { return parser_ && parser_->is_header_done(); }
  /// After kDone: the connection may carry another request.
  bool can_keep() const;
  const std::string& why() const { return why_; }

 private:
  Step begin_body(std::string_view& bytes);
  Step broken(std::string_view why);
  Step more();

  ReplySink* sink_ = nullptr;
  bool is_to_head_ = false;
  std::optional<HttpReplyParser> parser_;
  std::string unparsed_;  // The beginning of a head or a chunk's size.
  std::uint64_t taken_bytes_ = 0;
  std::size_t place_left_bytes_ = 0;  // Bytes of a body that bypass the
                                      // parser.
  bool has_excess_ = false;
  std::string why_;
};

}  // namespace leat
