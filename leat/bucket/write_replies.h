// Answers to what changes objects and buckets.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "leat/bucket/bucket_parts.h"
#include "leat/bucket/preconditions.h"
#include "leat/bucket/request_body.h"
#include "leat/serve/http_service.h"

namespace leat {

Reply create_bucket_reply(const BucketParts& parts, const S3Target& target);
Reply delete_bucket_reply(const BucketParts& parts, const S3Target& target);

/// The headers of a PUT that are kept with the object, a line each.
std::string kept_headers(const RequestHead& head);

/// Why these headers cannot be kept; nullopt if they can.
std::optional<S3Error> check_headers(std::string_view headers);

/// The facts that a write of an object needs besides its bytes. Owned, so that
/// it can wait for another thread.
struct WriteRequest {
  S3Target target;
  Preconditions conditions;
  std::string headers;  ///< As kept_headers() makes them.
};

/// A write whose bytes are those of another object.
struct CopyRequest {
  WriteRequest write;
  std::string source;  ///< The value of x-amz-copy-source.
  Preconditions source_conditions;
  /// x-amz-metadata-directive: REPLACE takes the headers of `write`; COPY, or
  /// nothing, those of the source.
  std::string directive;

  static CopyRequest of(const RequestHead& head, WriteRequest write);
};

/// Why the conditions do not let the object be written or removed; nullopt if
/// they do.
std::optional<S3Error> check_conditions(const BucketParts& parts,
                                        const WriteRequest& request);

/// Makes `draft` the object that `request` names, if its bucket is still there
/// and its conditions hold; no other write through this server comes between.
std::variant<ObjectState, S3Error> publish_object(BucketParts& parts,
                                                  const WriteRequest& request,
                                                  DraftObject draft,
                                                  std::string etag,
                                                  std::string headers);

/// PUT of an object whose body is in.
Reply put_object_reply(BucketParts& parts, const WriteRequest& request,
                       RequestBody& body);
Reply copy_object_reply(BucketParts& parts, const CopyRequest& request);
Reply delete_object_reply(BucketParts& parts, const WriteRequest& request);
/// `xml` names the keys.
Reply delete_objects_reply(BucketParts& parts, const S3Target& target,
                           const std::string& xml);

Reply create_upload_reply(BucketParts& parts, const WriteRequest& request);
Reply upload_part_reply(BucketParts& parts, const S3Target& target,
                        RequestBody& body);
/// `xml` names the parts.
Reply complete_upload_reply(BucketParts& parts, const WriteRequest& request,
                            const std::string& xml);
Reply abort_upload_reply(BucketParts& parts, const S3Target& target);

}  // namespace leat
