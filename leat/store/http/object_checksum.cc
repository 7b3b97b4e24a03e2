#include "leat/store/http/object_checksum.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "leat/base/errors.h"
#include "leat/base/hash.h"
#include "leat/base/object_checksums.h"
#include "leat/store/http/content_range.h"

namespace leat {
namespace {

using Bytes = std::span<const std::byte>;

static_assert(std::endian::native == std::endian::little);

/// The number's bytes, the highest first.
template <class Number>
std::string big_endian(Number number) {
  std::string bytes(sizeof number, '\0');
  std::memcpy(bytes.data(), &number, sizeof number);
  std::ranges::reverse(bytes);
  return bytes;
}

std::string digest(const EVP_MD* kind, Bytes bytes) {
  std::string result(static_cast<std::size_t>(EVP_MD_size(kind)), '\0');
  const int done = EVP_Digest(bytes.data(), bytes.size(),
                              reinterpret_cast<unsigned char*>(result.data()),
                              nullptr, kind, nullptr);
  // A policy may forbid MD5; then there is nothing to compare with.
  return done == 1 ? result : std::string();
}

struct Kind {
  std::string_view header;
  std::string_view before;  ///< Stands before it in the header's value.
  std::string_view name;
  std::size_t bytes = 0;
  std::string (*of)(Bytes) = nullptr;
};

std::string crc32c_of(Bytes bytes) { return big_endian(crc32c(bytes)); }
std::string md5_of(Bytes bytes) { return digest(EVP_md5(), bytes); }

/// The quick ones before the slow ones.
constexpr std::array<Kind, 9> kKinds = {{
    {"x-amz-checksum-crc64nvme", "", "CRC64NVME", 8,
     [](Bytes bytes) { return big_endian(crc64_nvme(bytes)); }},
    {"x-amz-checksum-crc32c", "", "CRC32C", 4, crc32c_of},
    {"x-amz-checksum-crc32", "", "CRC32", 4,
     [](Bytes bytes) { return big_endian(crc32_gzip(bytes)); }},
    {"x-goog-hash", "crc32c=", "CRC32C", 4, crc32c_of},
    {"x-amz-checksum-sha256", "", "SHA-256", 32,
     [](Bytes bytes) { return digest(EVP_sha256(), bytes); }},
    {"x-amz-checksum-sha1", "", "SHA-1", 20,
     [](Bytes bytes) { return digest(EVP_sha1(), bytes); }},
    {"x-goog-hash", "md5=", "MD5", 16, md5_of},
    {"x-ms-blob-content-md5", "", "MD5", 16, md5_of},
    {"content-md5", "", "MD5", 16, md5_of},
}};

std::string base64_of(std::string_view bytes) {
  std::string text(4 * ((bytes.size() + 2) / 3) + 1, '\0');
  const int length =
      EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                      reinterpret_cast<const unsigned char*>(bytes.data()),
                      static_cast<int>(bytes.size()));
  text.resize(static_cast<std::size_t>(length));
  return text;
}

/// True if `text` is a digest of `bytes` bytes, in base64.
bool is_base64(std::string_view text, std::size_t bytes) {
  const std::size_t padding = (3 - bytes % 3) % 3;
  if (text.size() != (bytes + padding) / 3 * 4) return false;
  const std::string_view digits = text.substr(0, text.size() - padding);
  return text.substr(digits.size()) == std::string(padding, '=') &&
         std::ranges::all_of(digits, [](char c) {
           return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                  (c >= '0' && c <= '9') || c == '+' || c == '/';
         });
}

/// "crc32c=n03x6A==,md5=Ojk9c3dhfxgoKVVHYwFbHQ==" holds two. Empty: not said.
std::string_view said(const HttpReply& reply, const Kind& kind) {
  std::string_view value = reply.header(kind.header);
  const std::size_t at = value.find(kind.before);
  if (at == std::string_view::npos) return {};
  value.remove_prefix(at + kind.before.size());
  value = value.substr(0, value.find(','));
  return is_base64(value, kind.bytes) ? value : std::string_view();
}

bool is_whole(const HttpReply& reply, std::size_t bytes) {
  const auto range = parse_content_range(reply.header("content-range"));
  if (!range) return reply.status == 200;
  return range->first == 0 && range->total == bytes;
}

}  // namespace

Result<void> check_object_checksum(const HttpReply& reply, Bytes bytes) {
  for (const Kind& kind : kKinds) {
    const std::string_view wanted = said(reply, kind);
    if (wanted.empty()) continue;
    if (!is_whole(reply, bytes.size())) return {};
    const std::string found = kind.of(bytes);
    if (found.empty()) continue;
    const std::string got = base64_of(found);
    if (got == wanted) return {};
    return unavailable(
        "the bytes came changed: their {} is {}, not {} as the service says",
        kind.name, got, wanted);
  }
  return {};
}

}  // namespace leat
