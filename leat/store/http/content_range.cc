#include "leat/store/http/content_range.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "leat/base/errors.h"
#include "leat/store/http/shown_text.h"

namespace leat {
namespace {

/// Takes a number and `after` from the front of `text`.
bool take_number(std::string_view& text, std::uint64_t& number,
                 std::string_view after) {
  const auto [stop, error] =
      std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(stop - text.data()));
  if (!text.starts_with(after)) return false;
  text.remove_prefix(after.size());
  return true;
}

bool is_in_parts(std::string_view content_type) {
  constexpr std::string_view kParts = "multipart/";
  return content_type.size() >= kParts.size() &&
         std::equal(kParts.begin(), kParts.end(), content_type.begin(),
                    [](char a, char b) { return a == (b | 0x20); });
}

std::string_view opaque_tag(std::string_view etag) {
  if (is_weak_etag(etag)) etag.remove_prefix(2);
  if (etag.starts_with('"')) etag.remove_prefix(1);
  if (etag.ends_with('"')) etag.remove_suffix(1);
  return etag;
}

}  // namespace

std::optional<ContentRange> parse_content_range(std::string_view value) {
  constexpr std::string_view kUnit = "bytes ";
  if (!value.starts_with(kUnit)) return std::nullopt;
  value.remove_prefix(kUnit.size());
  ContentRange range;
  if (!take_number(value, range.first, "-") ||
      !take_number(value, range.last, "/") || range.last < range.first) {
    return std::nullopt;
  }
  if (value == "*") return range;
  std::uint64_t total = 0;
  if (!take_number(value, total, "") || !value.empty() || range.last >= total) {
    return std::nullopt;
  }
  range.total = total;
  return range;
}

Result<void> check_range(const HttpReply& reply, const ObjectId& object,
                         std::uint64_t offset, std::uint64_t size_bytes) {
  const std::string_view value = reply.header("content-range");
  if (reply.status == 206 && is_in_parts(reply.header("content-type"))) {
    return unavailable(
        "HTTP 206 in several parts (multipart/byteranges), but one range was "
        "asked for; put the data on a server that sends single ranges");
  }
  if (reply.status == 206 && value.empty()) {
    return unavailable(
        "HTTP 206 without a Content-Range: the server does not say which bytes "
        "it sent; put the data on one that does");
  }
  const auto range = parse_content_range(value);
  const bool is_other = !range || range->first != offset ||
                        range->last - range->first + 1 != size_bytes;
  if ((reply.status == 206 || range) && is_other) {
    return unavailable("HTTP {} with the range '{}', not the one asked for",
                       reply.status, shown_text(value));
  }
  if (range && range->total) {
    LEAT_TRY_VOID(check_object_size(object, *range->total));
  }
  // With status 200, the body has filled the buffer, so the whole
  // object has that size.
  if (reply.status == 206 || (reply.status == 200 && offset == 0)) return {};
  return invalid(
      "HTTP {} for a range: the server ignores ranges; put the data on one "
      "that serves them",
      reply.status);
}

std::string range_header(std::uint64_t offset, std::uint64_t size_bytes) {
  return fmt::format("Range: bytes={}-{}", offset, offset + (size_bytes - 1));
}

std::optional<std::string> if_match_header(std::string_view etag) {
  if (etag.empty() || is_weak_etag(etag)) return std::nullopt;
  return fmt::format("If-Match: {}", etag);
}

bool is_weak_etag(std::string_view etag) {
  return etag.starts_with("W/") || etag.starts_with("w/");
}

bool same_version(std::string_view etag, std::string_view other) {
  return opaque_tag(etag) == opaque_tag(other);
}

}  // namespace leat
