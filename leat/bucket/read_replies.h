// Answers about objects: GET and HEAD.
#pragma once
#include <cstdint>
#include <string>

#include "leat/bucket/bucket_parts.h"
#include "leat/serve/http_service.h"

namespace leat {

struct ObjectReply {
  Reply reply;
  /// Stands for the key and range that were sent; 0 if none were.
  std::uint64_t identity = 0;
};

/// GET and HEAD of an object, whole or a range, under the conditions of `head`.
ObjectReply object_reply(BucketParts& parts, const S3Target& target,
                         const RequestHead& head);

}  // namespace leat
