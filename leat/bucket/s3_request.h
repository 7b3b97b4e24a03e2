// The operation and arguments of an S3 request.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "leat/store/s3/aws/sigv4.h"

namespace leat {

/// /BUCKET/KEY?QUERY in path style, decoded.
struct S3Target {
  std::string bucket;  ///< Empty for the service itself.
  std::string key;     ///< Empty for the bucket itself.
  QueryPairs query;

  /// The value of `name`; empty if it has none or is not there.
  std::string_view value(std::string_view name) const;
  bool has(std::string_view name) const;
};

/// Nullopt if it does not begin with a slash.
std::optional<S3Target> parse_target(std::string_view target);

enum class Operation : std::uint8_t {
  kListBuckets,
  kListObjects,
  kListObjectsV2,
  kBucketLocation,
  kBucketVersioning,
  kListUploads,
  kHeadBucket,
  kCreateBucket,
  kDeleteBucket,
  kDeleteObjects,
  kGetObject,
  kHeadObject,
  kPutObject,
  kCopyObject,
  kDeleteObject,
  kCreateUpload,
  kUploadPart,
  kCompleteUpload,
  kAbortUpload,
  kListParts,
  kNotImplemented,
  kMethodNotAllowed,
};

enum class CopySource { kAbsent, kPresent };

/// The operation that `method` on `target` means.
Operation operation_of(std::string_view method, const S3Target& target,
                       CopySource copy_source);

}  // namespace leat
