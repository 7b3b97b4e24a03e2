// Where a dataset is.
#pragma once
#include <string>
#include <string_view>

#include "leat/base/result.h"

namespace leat {

/// A URL cut into the part that opens a store and the prefix of keys in it.
///
///   s3://bucket/imagenet/train   scheme s3, authority bucket, path
///   imagenet/train https://host:8080/data       scheme https, authority
///   host:8080, path data file:///data/x or /data/x    scheme file, authority
///   empty, path /data/x
///
/// The path has no slash at its end, and outside `file` none at its start.
struct Url {
  std::string scheme;
  std::string authority;
  std::string path;

  /// The URL again, without user name, password or query.
  std::string text() const;
};

/// Errors:
///   kInvalidArgument  an unknown scheme, no bucket or host, a user name and
///                     password in the URL (they belong in the environment)
Result<Url> parse_url(std::string_view text);

}  // namespace leat
