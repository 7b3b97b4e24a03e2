// The URL of a dataset.
#pragma once
#include <string>
#include <string_view>

#include "leat/base/result.h"

namespace leat {

/// A URL cut into the part that opens a store and the prefix of keys in it.
///
///   URL                        scheme  authority  path
///   s3://bucket/train/images   s3      bucket     train/images
///   https://host:8080/data     https   host:8080  data
///   file:///data/x, /data/x    file               /data/x
///
/// The path has no slash at its end, and outside `file` none at its start.
struct Url {
  std::string scheme;
  std::string authority;
  std::string path;

  /// The URL again, without user name, password or query.
  std::string text() const;
  /// The bucket or host as a URL: "s3://bucket", "https://host:8080", the same
  /// for all ways to write it; empty for files.
  std::string bucket() const;
};

/// Errors:
///   kInvalidArgument  an unknown scheme, no bucket or host, a user name and
///                     password in the URL (they belong in the environment)
Result<Url> parse_url(std::string_view text);

}  // namespace leat
