// AWS Signature Version 4, as S3 wants it: paths are encoded once, never twice.
// Pure but for the key of the day, which a Signer remembers. sigv4_verify.h has
// what a server needs to check a signature.
#pragma once
#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "leat/base/mutex.h"
#include "leat/store/cloud/credentials.h"
#include "leat/store/cloud/digest.h"
#include "leat/store/cloud/http_date.h"
#include "leat/store/cloud/uri.h"

namespace leat {

/// A time as SigV4 writes it: 20130524T000000Z.
class AmzDate {
 public:
  /// REQUIRES: a year of four digits.
  explicit AmzDate(WallTime time);
  /// Nullopt unless `text` is exactly of that form and a real time.
  static std::optional<AmzDate> parse(std::string_view text);

  std::string_view text() const { return {text_.data(), text_.size()}; }
  std::string_view day() const { return text().substr(0, 8); }
  WallTime time() const { return time_; }

 private:
  WallTime time_;
  std::array<char, 16> text_;
};

inline constexpr std::string_view kSigv4Algorithm = "AWS4-HMAC-SHA256";

/// The payload hash of a request whose body is not signed (over TLS), and of
/// one without a body.
inline constexpr std::string_view kUnsignedPayload = "UNSIGNED-PAYLOAD";
inline constexpr std::string_view kEmptyPayload =
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// A request as it is signed. Lent: nothing is copied.
struct SigningRequest {
  struct Header {
    std::string_view name;  ///< Lower case.
    std::string_view value;
  };
  std::string_view method;
  std::string_view path;   ///< Encoded, as it is sent; begins with '/'.
  std::string_view query;  ///< As canonical_query() makes it.
  /// Sorted by name, each name once. Must hold `host`; for S3 also
  /// `x-amz-content-sha256`, `x-amz-date` and, if any, `x-amz-security-token`.
  std::span<const Header> headers;
  std::string_view payload_hash;  ///< Hex, or kUnsignedPayload.
};

std::string canonical_request(const SigningRequest& request);

/// `host;range;x-amz-date`.
std::string signed_header_names(const SigningRequest& request);

/// The scope of a signature: day/region/service/aws4_request.
std::string credential_scope(std::string_view day, std::string_view region,
                             std::string_view service);

std::string string_to_sign(const AmzDate& date, std::string_view scope,
                           std::string_view canonical_request);

Sha256 signing_key(std::string_view secret_access_key, std::string_view day,
                   std::string_view region, std::string_view service);

/// Signs requests for one region and service.
///
/// Threads: any.
class Signer {
 public:
  Signer(Credentials credentials, std::string region,
         std::string service = "s3");

  /// 64 hexadecimal digits.
  std::string signature(const SigningRequest& request,
                        const AmzDate& date) const;

  /// The value of the `Authorization` header. `date` is what the request's
  /// `x-amz-date` says.
  std::string authorization(const SigningRequest& request,
                            const AmzDate& date) const;

  const Credentials& credentials() const { return credentials_; }
  const std::string& region() const { return region_; }

 private:
  Sha256 key_of(std::string_view day) const;

  const Credentials credentials_;
  const std::string region_;
  const std::string service_;

  mutable Mutex mutex_;
  mutable std::string day_ LEAT_GUARDED_BY(mutex_);
  mutable Sha256 key_ LEAT_GUARDED_BY(mutex_) = {};
};

}  // namespace leat
