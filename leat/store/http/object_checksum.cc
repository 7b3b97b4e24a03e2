#include "leat/store/http/object_checksum.h"

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string_view>

#include "leat/base/hash.h"
#include "leat/store/http/content_range.h"

namespace leat {
namespace {

/// Four bytes in base64 are six characters and "==".
constexpr std::size_t kTextBytes = 8;

std::optional<std::uint32_t> number_in_base64(std::string_view text) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  if (text.size() != kTextBytes || !text.ends_with("==")) return std::nullopt;
  std::uint64_t bits = 0;
  for (const char c : text.substr(0, 6)) {
    const std::size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos) return std::nullopt;
    bits = bits << 6U | digit;
  }
  return static_cast<std::uint32_t>(bits >> 4U);  // The first 32 of 36.
}

/// The part "crc32c=..." of "crc32c=n03x6A==,md5=Ojk9c3dhfxgoKVVHYwFbHQ==".
std::string_view crc32c_in(std::string_view goog_hash) {
  constexpr std::string_view kName = "crc32c=";
  const std::size_t at = goog_hash.find(kName);
  if (at == std::string_view::npos) return {};
  return goog_hash.substr(at + kName.size(), kTextBytes);
}

bool is_whole(const HttpReply& reply, std::size_t bytes) {
  const auto range = parse_content_range(reply.header("content-range"));
  if (!range) return reply.status == 200;
  return range->first == 0 && range->total == bytes;
}

}  // namespace

Result<void> check_object_checksum(const HttpReply& reply,
                                   std::span<const std::byte> bytes) {
  std::string_view said = reply.header("x-amz-checksum-crc32c");
  if (said.empty()) said = crc32c_in(reply.header("x-goog-hash"));
  // That of an object in parts is one of its parts' checksums: "...-3".
  const auto wanted = number_in_base64(said);
  if (!wanted || !is_whole(reply, bytes.size())) return {};
  const std::uint32_t got = crc32c(bytes);
  if (got == *wanted) return {};
  return Error(
      ErrorCode::kUnavailable,
      fmt::format("the bytes came changed: their CRC32C is {:08x}, not "
                  "{:08x} as the service says",
                  got, *wanted));
}

}  // namespace leat
