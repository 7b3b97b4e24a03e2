#include "leat/bucket/s3_error.h"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace leat {
namespace {

struct Row {
  S3Code code;
  std::string_view name;
  int status;
  std::string_view message;
};

constexpr std::array kRows{
    Row{S3Code::kAccessDenied, "AccessDenied", 403, "Access Denied"},
    Row{S3Code::kBadDigest, "BadDigest", 400,
        "The Content-MD5 you specified did not match what we received."},
    Row{S3Code::kBucketAlreadyOwnedByYou, "BucketAlreadyOwnedByYou", 409,
        "Your previous request to create the named bucket succeeded and you "
        "already own it."},
    Row{S3Code::kBucketNotEmpty, "BucketNotEmpty", 409,
        "The bucket you tried to delete is not empty"},
    Row{S3Code::kEntityTooLarge, "EntityTooLarge", 400,
        "Your proposed upload exceeds the maximum allowed size"},
    Row{S3Code::kEntityTooSmall, "EntityTooSmall", 400,
        "Your proposed upload is smaller than the minimum allowed size"},
    Row{S3Code::kExpiredToken, "ExpiredToken", 400,
        "The provided token has expired."},
    Row{S3Code::kIncompleteBody, "IncompleteBody", 400,
        "The request body terminated unexpectedly"},
    Row{S3Code::kInternalError, "InternalError", 500,
        "We encountered an internal error. Please try again."},
    Row{S3Code::kInvalidArgument, "InvalidArgument", 400, "Invalid Argument"},
    Row{S3Code::kInvalidBucketName, "InvalidBucketName", 400,
        "The specified bucket is not valid."},
    Row{S3Code::kInvalidPart, "InvalidPart", 400,
        "One or more of the specified parts could not be found.  The part may "
        "not have been uploaded, or the specified entity tag may not match "
        "the part's entity tag."},
    Row{S3Code::kInvalidPartOrder, "InvalidPartOrder", 400,
        "The list of parts was not in ascending order. Parts must be ordered "
        "by part number."},
    Row{S3Code::kInvalidRange, "InvalidRange", 416,
        "The requested range is not satisfiable"},
    Row{S3Code::kInvalidToken, "InvalidToken", 400,
        "The provided token is malformed or otherwise invalid."},
    Row{S3Code::kInvalidUri, "InvalidURI", 400,
        "Couldn't parse the specified URI."},
    Row{S3Code::kMalformedXml, "MalformedXML", 400,
        "The XML you provided was not well-formed or did not validate against "
        "our published schema"},
    Row{S3Code::kMetadataTooLarge, "MetadataTooLarge", 400,
        "Your metadata headers exceed the maximum allowed metadata size; this "
        "server keeps 4096 bytes of headers with an object"},
    Row{S3Code::kMethodNotAllowed, "MethodNotAllowed", 405,
        "The specified method is not allowed against this resource."},
    Row{S3Code::kNoSuchBucket, "NoSuchBucket", 404,
        "The specified bucket does not exist"},
    Row{S3Code::kNoSuchKey, "NoSuchKey", 404,
        "The specified key does not exist."},
    Row{S3Code::kNoSuchUpload, "NoSuchUpload", 404,
        "The specified multipart upload does not exist. The upload ID may be "
        "invalid, or the upload may have been aborted or completed."},
    Row{S3Code::kNotImplemented, "NotImplemented", 501,
        "A header or query you provided implies functionality that is not "
        "implemented."},
    Row{S3Code::kPreconditionFailed, "PreconditionFailed", 412,
        "At least one of the pre-conditions you specified did not hold"},
    Row{S3Code::kSlowDown, "SlowDown", 503, "Please reduce your request rate."},
    Row{S3Code::kContentSha256Mismatch, "XAmzContentSHA256Mismatch", 400,
        "The provided 'x-amz-content-sha256' header does not match what was "
        "computed."},
};

const Row& row_of(S3Code code) {
  for (const Row& row : kRows) {
    if (row.code == code) return row;
  }
  return row_of(S3Code::kInternalError);
}

}  // namespace

S3Error s3_error(S3Code code, std::string message) {
  const Row& row = row_of(code);
  if (message.empty()) message = row.message;
  return {row.name, row.status, std::move(message)};
}

S3Error s3_error_of_status(int status) {
  switch (status) {
    case 403:
      return s3_error(S3Code::kAccessDenied);
    case 404:
      return s3_error(S3Code::kNoSuchKey);
    case 412:
      return s3_error(S3Code::kPreconditionFailed);
    case 500:
      return s3_error(S3Code::kInternalError);
    case 503:
      return s3_error(S3Code::kSlowDown);
    default:
      return {"InjectedFault", status, "This server was told to fail here."};
  }
}

Reply error_reply(const S3Error& error, std::string_view resource) {
  Reply reply;
  reply.status = error.status;
  reply.headers = "Content-Type: application/xml\r\n";
  reply.body = fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<Error><Code>{}</Code><Message>{}</Message><Resource>{}</Resource>"
      "</Error>",
      error.code, xml_escape(error.message), xml_escape(resource));
  return reply;
}

std::string xml_escape(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          out += fmt::format("&#x{:x};", static_cast<unsigned char>(c));
        } else {
          out += c;
        }
    }
  }
  return out;
}

}  // namespace leat
