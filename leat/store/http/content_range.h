// Which bytes of which version a reply carries.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "leat/base/result.h"
#include "leat/store/http/http_client.h"
#include "leat/store/store.h"

namespace leat {

/// "bytes 0-99/1234": the range that a 206 carries.
struct ContentRange {
  std::uint64_t first = 0;
  std::uint64_t last = 0;              ///< Inclusive; not before `first`.
  std::optional<std::uint64_t> total;  ///< Unknown if it says "*".
};

/// Nullopt for anything else.
std::optional<ContentRange> parse_content_range(std::string_view value);

/// Checks that a success says that it carries exactly `size_bytes` bytes from
/// `offset` on, and of an object of the size that `object` has, if both know
/// it. REQUIRES: its body has filled HttpRequest::into.
///
/// Errors:
///   kCorrupt          the object has another size
///   kUnavailable      it carries another range, several, or does not say which
///   kInvalidArgument  the server ignores ranges
Result<void> check_range(const HttpReply& reply, const ObjectId& object,
                         std::uint64_t offset, std::uint64_t size_bytes);

/// "Range: bytes=0-99", a header that asks for it. REQUIRES: not empty.
std::string range_header(std::uint64_t offset, std::uint64_t size_bytes);

/// "If-Match: …", a header that asks for one version; nullopt if no header can:
/// there is no tag, or it is weak, which a server may never take for a match
/// (RFC 9110, section 13.1.1).
std::optional<std::string> if_match_header(std::string_view etag);

/// True for a tag that only says "as good as": W/"...".
bool is_weak_etag(std::string_view etag);

/// True if both name one version of an object: the weak comparison of RFC 9110,
/// section 8.8.3.2. A proxy that compresses makes a
/// tag weak, and some servers leave the quotes out.
bool same_version(std::string_view etag, std::string_view other);

}  // namespace leat
