#include "leat/bucket/request_body.h"

#include <openssl/evp.h>

#include <array>
#include <utility>

#include "leat/base/buffer.h"
#include "leat/base/check.h"
#include "leat/base/text.h"

namespace leat {
namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";

std::string to_base64(std::string_view bytes) {
  std::string text(4 * ((bytes.size() + 2) / 3) + 1, '\0');
  const int size = EVP_EncodeBlock(
      reinterpret_cast<unsigned char*>(text.data()),
      reinterpret_cast<const unsigned char*>(bytes.data()), int(bytes.size()));
  text.resize(std::size_t(size));
  return text;
}

bool is_sha256(std::string_view text) {
  return text.size() == 64 && from_hex(text).has_value();
}

bool is_aws_chunked(const RequestHead& head) {
  return head.header("x-amz-content-sha256").starts_with("STREAMING-") ||
         head.header("content-encoding").find("aws-chunked") !=
             std::string_view::npos;
}

std::optional<std::uint64_t> decoded_bytes(const RequestHead& head) {
  return number_from<std::uint64_t>(
      head.header("x-amz-decoded-content-length"));
}

}  // namespace

class RequestBody::Digest {
 public:
  explicit Digest(const EVP_MD* algorithm)
      : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
    LEAT_CHECK(context_ &&
               EVP_DigestInit_ex(context_.get(), algorithm, nullptr) == 1);
  }
  void update(std::span<const std::byte> bytes) {
    LEAT_CHECK(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) ==
               1);
  }
  std::string finish() {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
    unsigned size = 0;
    LEAT_CHECK(EVP_DigestFinal_ex(context_.get(), digest.data(), &size) == 1);
    return {reinterpret_cast<const char*>(digest.data()), size};
  }

 private:
  std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context_;
};

RequestBody::RequestBody(const RequestHead& head, std::string_view payload_hash,
                         std::optional<DraftObject> draft)
    : draft_(std::move(draft)),
      expected_md5_(head.header("content-md5")),
      md5_(std::make_unique<Digest>(EVP_md5())) {
  if (is_aws_chunked(head)) {
    expected_bytes_ = decoded_bytes(head);
    chunked_.emplace(
        [this](std::span<const std::byte> bytes) { put_plain(bytes); });
  } else if (is_sha256(payload_hash)) {
    expected_sha256_ = payload_hash;
    sha256_ = std::make_unique<Digest>(EVP_sha256());
  }
}

RequestBody::~RequestBody() = default;

void RequestBody::put(std::span<const std::byte> bytes) {
  if (failure_) return;
  if (!chunked_) return put_plain(bytes);
  if (!chunked_->put(bytes)) fail(s3_error(S3Code::kIncompleteBody));
}

void RequestBody::put_plain(std::span<const std::byte> bytes) {
  if (failure_) return;
  size_bytes_ += bytes.size();
  md5_->update(bytes);
  if (sha256_) sha256_->update(bytes);
  if (!draft_) {
    if (text_.size() + bytes.size() > kMostTextBytes) {
      return fail(s3_error(S3Code::kEntityTooLarge));
    }
    text_ += as_text(bytes);
    return;
  }
  if (auto written = draft_->write(bytes); !written) {
    fail(s3_error(S3Code::kInternalError, written.error().message()));
  }
}

void RequestBody::fail(S3Error error) {
  failure_ = std::move(error);
  draft_.reset();
}

std::optional<S3Error> RequestBody::finish() {
  if (failure_) return failure_;
  if (chunked_ && (!chunked_->is_whole() ||
                   (expected_bytes_ && *expected_bytes_ != size_bytes_))) {
    return s3_error(S3Code::kIncompleteBody);
  }
  const std::string md5_bytes = md5_->finish();
  md5_hex_ = to_hex(md5_bytes);
  if (!expected_md5_.empty() && to_base64(md5_bytes) != expected_md5_) {
    return s3_error(S3Code::kBadDigest);
  }
  if (sha256_ && to_hex(sha256_->finish()) != expected_sha256_) {
    return s3_error(S3Code::kContentSha256Mismatch);
  }
  return std::nullopt;
}

std::string md5(std::string_view bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned size = 0;
  LEAT_CHECK(EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size,
                        EVP_md5(), nullptr) == 1);
  return {reinterpret_cast<const char*>(digest.data()), size};
}

std::string to_hex(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const char c : bytes) {
    text += kHexDigits[static_cast<unsigned char>(c) >> 4];
    text += kHexDigits[static_cast<unsigned char>(c) & 15];
  }
  return text;
}

std::optional<std::string> from_hex(std::string_view digits) {
  if (digits.size() % 2 != 0) return std::nullopt;
  std::string bytes;
  bytes.reserve(digits.size() / 2);
  for (std::size_t i = 0; i < digits.size(); i += 2) {
    const std::size_t high = kHexDigits.find(digits[i]);
    const std::size_t low = kHexDigits.find(digits[i + 1]);
    if (high == std::string_view::npos || low == std::string_view::npos) {
      return std::nullopt;
    }
    bytes += static_cast<char>(high * 16 + low);
  }
  return bytes;
}

}  // namespace leat
