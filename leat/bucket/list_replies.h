// Answers about buckets: the list of them.
#pragma once
#include "leat/bucket/bucket_parts.h"
#include "leat/serve/http_service.h"

namespace leat {

Reply list_buckets_reply(const BucketParts& parts);
/// ListObjectsV2, and the first version of it, as `operation` says.
Reply list_objects_reply(BucketParts& parts, const S3Target& target,
                         Operation operation);
Reply list_uploads_reply(const BucketParts& parts, const S3Target& target);
Reply list_parts_reply(const BucketParts& parts, const S3Target& target);

}  // namespace leat
