// The meaning of S3's errors.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "leat/base/error.h"
#include "leat/store/http/http_client.h"

namespace leat {

/// A longer reply is not read.
inline constexpr std::size_t kMostS3ErrorBytes = 64 << 10;

/// The <Error> of a reply, made fit for display: short, without control
/// characters and our secrets. Missing parts are empty.
struct S3ErrorReply {
  std::string code;
  std::string message;
  std::string request_id;
  std::string region;  ///< The real region of the bucket.
};

/// Reads the body of a reply; nullopt if it is not an S3 error. None of
/// `secrets` is in the result: see shown_text().
std::optional<S3ErrorReply> parse_s3_error(
    std::string_view body, std::span<const std::string> secrets = {});

/// The change that would make the same request succeed.
enum class S3Cure : std::uint8_t {
  kNone,
  kClock,        ///< Signing with the server's time.
  kRegion,       ///< Going to `S3Errand::region`.
  kCredentials,  ///< Newer temporary credentials.
};
struct S3Errand {
  S3Cure cure = S3Cure::kNone;
  std::string region;
};

/// Decides what to do about a reply that is not a success. A HEAD's reply has
/// no body; only its headers name a region.
S3Errand errand_of(const HttpReply& reply);

/// The request, for the message.
struct S3Attempt {
  std::string doing;  ///< "reading s3://ds/7.tar [0, 65536)"
  std::string bucket;
  std::string host;    ///< The host that was asked.
  std::string region;  ///< The region that the request was signed for.
  bool is_signed = true;
  std::string_view keys_remedy{};  ///< See S3Settings.
};

/// The error that a reply describes: an HTTP status that is not a success, or a
/// success whose body is an <Error>.
///
/// Errors, by S3's code, or else by the status as in http/status.h:
///   kNotFound          NoSuchKey, NoSuchBucket
///   kPermissionDenied  AccessDenied, SignatureDoesNotMatch,
///   InvalidAccessKeyId,
///                      ExpiredToken, InvalidToken, RequestTimeTooSkewed
///   kThrottled         SlowDown, ServiceUnavailable, Throttling…
///   kUnavailable       InternalError, RequestTimeout (also as HTTP 400)
///   kCorrupt           PreconditionFailed: not the version asked for
///   kInvalidArgument   InvalidRange; a bucket in another region; the rest
Error error_from_s3(const HttpReply& reply, const S3Attempt& attempt);

}  // namespace leat
