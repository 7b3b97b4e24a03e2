// A body on its way into a file or into memory.
#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "leat/bucket/chunked_body.h"
#include "leat/bucket/folder.h"
#include "leat/bucket/s3_error.h"
#include "leat/serve/http_service.h"

namespace leat {

/// Takes off the chunked framing of AWS clients, and checks what the headers
/// say of the bytes: their length, MD5 and SHA-256.
///
/// Threads: one at a time.
class RequestBody {
 public:
  static constexpr std::size_t kMostTextBytes = 4 << 20;

  /// Into `draft`, or without one into text() of at most kMostTextBytes.
  /// `payload_hash` is what was signed for the body; empty for not signed.
  RequestBody(const RequestHead& head, std::string_view payload_hash,
              std::optional<DraftObject> draft);
  ~RequestBody();

  void put(std::span<const std::byte> bytes);

  /// Why the body cannot be used; nullopt if it can. Call once, at its end.
  std::optional<S3Error> finish();

  // Once finish() has found nothing.
  const std::string& md5_hex() const { return md5_hex_; }
  const std::string& text() const { return text_; }
  DraftObject take_draft() { return *std::move(draft_); }

 private:
  class Digest;

  void put_plain(std::span<const std::byte> bytes);
  /// The body is of no use from here on, so its draft gives its space back.
  void fail(S3Error error);

  std::optional<DraftObject> draft_;
  std::string text_;
  std::optional<ChunkedBody> chunked_;
  std::optional<std::uint64_t> expected_bytes_;
  std::uint64_t size_bytes_ = 0;
  std::string expected_md5_;     // Base64.
  std::string expected_sha256_;  // Hexadecimal.
  std::unique_ptr<Digest> md5_;
  std::unique_ptr<Digest> sha256_;  // Null if nobody wants it.
  std::string md5_hex_;
  std::optional<S3Error> failure_;
};

/// MD5 of `bytes`, raw: 16 bytes.
std::string md5(std::string_view bytes);
/// Two lower-case hexadecimal digits a byte.
std::string to_hex(std::string_view bytes);
/// The bytes of hexadecimal digits; nullopt if they are none.
std::optional<std::string> from_hex(std::string_view digits);

}  // namespace leat
