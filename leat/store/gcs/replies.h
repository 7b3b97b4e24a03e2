// The answers of Google Cloud Storage's JSON API, which are hostile bytes.
#pragma once
#include <string>
#include <string_view>

#include "leat/base/error.h"
#include "leat/base/result.h"
#include "leat/store/http/http_client.h"
#include "leat/store/store.h"

namespace leat {

/// Reads a page of objects: bounded and checked. Objects up to `start_after`
/// are left out: the service's own bound lets that key through.
///
/// Errors:
///   kCorrupt  no such JSON or far too much of it, a size or generation that
///             is no number, keys out of byte order or outside `prefix`
Result<ListPage> parse_gcs_list(std::string_view body, std::string_view prefix,
                                std::string_view start_after);

/// Reads an object's resource: size, generation as `etag`, time.
///
/// Errors:
///   kCorrupt  no such JSON, no size, no generation
Result<ObjectInfo> parse_gcs_object(std::string_view body,
                                    std::string_view key);

/// The request, for the message.
struct GcsAttempt {
  std::string doing;  ///< "reading gs://ds/7.tar [0, 65536)"
  bool is_anonymous = false;
  bool has_newer = false;  ///< See AuthorizedReply.
};

/// The error of a reply that is not a success. It shows none of
/// HttpReply::sent_values.
///
/// Errors, by the reason in it, or else by the status as in http/status.h:
///   kThrottled    rateLimitExceeded, userRateLimitExceeded
///   kUnavailable  also a refused token, if there is a newer one
Error error_from_gcs(const HttpReply& reply, const GcsAttempt& attempt);

}  // namespace leat
