// Odd and hostile replies, and what a client must make of each.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "leat/base/error.h"
#include "leat/store/testing/http_server.h"

namespace leat::testing {

/// Without a code: the bytes are right.
struct Outcome {
  std::optional<ErrorCode> code{};
  std::string says{};  ///< A part of the message.
};

/// The request, and the store that sends it.
enum class Ask { kRead, kHttpRead, kList, kStat, kWrite };

/// One row: a reply, and its outcome over either carrier.
struct OddReply {
  std::string name;
  ServerReply reply{};
  Outcome outcome{};
  /// Set if libcurl judges otherwise, and is as right.
  std::optional<Outcome> by_libcurl{};
  Ask ask = Ask::kRead;
  std::uint64_t offset = 5;
  std::size_t size_bytes = 10;
  std::string etag = "\"v1\"";
  /// If set, makes the reply instead of `reply`.
  ScriptedServer::Answer answer{};
  /// The client has the deadlines of slow_replies.cc; else it is patient, since
  /// the machine may be busy.
  bool is_timed = false;
  /// Before the next request on the client.
  Nanoseconds rest{0};
};

std::vector<OddReply> odd_heads();
std::vector<OddReply> odd_bodies();
std::vector<OddReply> odd_chunks();
std::vector<OddReply> odd_ranges();
std::vector<OddReply> odd_errors();
std::vector<OddReply> odd_lists();
std::vector<OddReply> slow_replies();

/// The bytes of the object that is read: "0123456789abcdefghij…".
std::string object_bytes(std::uint64_t offset, std::size_t size_bytes);

/// The head of the reply to a read: "HTTP/1.1 206 …", `lines` of headers (each
/// with its end), and the empty line.
std::string head_206(std::string_view lines);
/// The same with the length, range and ETag of the default read.
std::string good_head(std::string_view more_lines = "");
/// The body of the default read.
inline const std::string kGoodBody = "56789abcde";

inline Outcome fails(ErrorCode code, std::string says) {
  return {.code = code, .says = std::move(says)};
}
inline const Outcome kRight{};

}  // namespace leat::testing
