#include "leat/bucket/bucket_parts.h"

#include <sys/stat.h>

#include <cerrno>

#include "leat/base/system_error.h"
#include "leat/store/s3/aws/sigv4.h"

namespace leat {
namespace {

/// A name that cannot be a bucket's is that of no bucket. Other failures say
/// nothing of whether there is one.
S3Error bucket_failure(const Error& error) {
  return error.code() == ErrorCode::kNotFound ||
                 error.code() == ErrorCode::kInvalidArgument
             ? s3_error(S3Code::kNoSuchBucket)
             : write_failure(error);
}

}  // namespace

std::optional<S3Error> check_bucket(const BucketParts& parts,
                                    std::string_view bucket) {
  const auto path = parts.folder.bucket_path(bucket);
  if (!path) return bucket_failure(path.error());
  struct stat status;
  if (::stat(path->c_str(), &status) != 0) {
    return bucket_failure(system_error(errno, "looking at the bucket"));
  }
  if (S_ISDIR(status.st_mode)) return std::nullopt;
  return s3_error(S3Code::kNoSuchBucket);
}

S3Error write_failure(const Error& error) {
  switch (error.code()) {
    case ErrorCode::kInvalidArgument:
      return s3_error(S3Code::kInvalidArgument, error.message());
    case ErrorCode::kPermissionDenied:
      return s3_error(S3Code::kAccessDenied, error.message());
    case ErrorCode::kNotFound:
      return s3_error(S3Code::kNoSuchKey);
    default:
      return s3_error(S3Code::kInternalError, error.message());
  }
}

S3Error read_failure(const BucketParts& parts, std::string_view bucket,
                     const Error& error) {
  // An object with an invalid key cannot exist, so the answer is NoSuchKey.
  if (error.code() != ErrorCode::kNotFound &&
      error.code() != ErrorCode::kInvalidArgument) {
    return write_failure(error);
  }
  return check_bucket(parts, bucket).value_or(s3_error(S3Code::kNoSuchKey));
}

Reply xml_reply(std::string_view inside) {
  Reply reply;
  reply.headers = "Content-Type: application/xml\r\n";
  reply.body = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
  reply.body += inside;
  return reply;
}

std::string shown(std::string_view text, const S3Target& target) {
  return target.value("encoding-type") == "url" ? uri_encode(text, Slash::kKeep)
                                                : xml_escape(text);
}

}  // namespace leat
