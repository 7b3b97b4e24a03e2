// The parts that the replies of S3 have in common.
#pragma once
#include <fmt/format.h>

#include <string_view>

#include "leat/bucket/s3_error.h"
#include "leat/bucket/s3_request.h"

namespace leat {

/// The attribute of each document's outermost tag.
inline constexpr std::string_view kS3Namespace =
    "xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"";

inline Reply empty_reply(int status) {
  Reply reply;
  reply.status = status;
  return reply;
}

inline Reply refused(const S3Error& error, const S3Target& target) {
  return error_reply(error, fmt::format("/{}/{}", target.bucket, target.key));
}

}  // namespace leat
