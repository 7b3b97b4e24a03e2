// The errors that S3 answers with.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "leat/serve/http_service.h"

namespace leat {

enum class S3Code : std::uint8_t {
  kAccessDenied,
  kBadDigest,
  kBucketAlreadyOwnedByYou,
  kBucketNotEmpty,
  kEntityTooLarge,
  kEntityTooSmall,
  kExpiredToken,
  kIncompleteBody,
  kInternalError,
  kInvalidArgument,
  kInvalidBucketName,
  kInvalidPart,
  kInvalidPartOrder,
  kInvalidRange,
  kInvalidToken,
  kInvalidUri,
  kMalformedXml,
  kMetadataTooLarge,
  kMethodNotAllowed,
  kNoSuchBucket,
  kNoSuchKey,
  kNoSuchUpload,
  kNotImplemented,
  kPreconditionFailed,
  kSlowDown,
  kContentSha256Mismatch,
};

/// A refusal: the content of the reply's XML.
struct S3Error {
  std::string_view code;  ///< A literal: "NoSuchKey".
  int status;
  std::string message;
};

/// `message` empty for what S3 says.
S3Error s3_error(S3Code code, std::string message = {});

/// The refusal that stands for a status of its own, as faults are written.
S3Error s3_error_of_status(int status);

/// The reply that carries it. `resource` is what was asked for.
Reply error_reply(const S3Error& error, std::string_view resource);

/// `text` for between tags: & < > " and control characters escaped.
std::string xml_escape(std::string_view text);

}  // namespace leat
