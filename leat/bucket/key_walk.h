// The keys of a bucket in byte order, page by page, folded at a delimiter.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "leat/base/result.h"
#include "leat/bucket/folder_entries.h"

namespace leat {

struct KeyQuery {
  std::string prefix;
  std::string delimiter;
  /// Only keys after this one, as S3 defines it: for folded keys, the whole
  /// group at or before it is left out.
  std::string after;
  std::size_t most = 1000;
};

struct FoundKey {
  std::string key;
  bool is_prefix = false;  ///< Stands for all keys that begin with it.
};

struct KeyPage {
  std::vector<FoundKey> found;  ///< Keys and prefixes together, in byte order.
  bool is_cut = false;          ///< There is more after the last one.
};

/// Walks the folder at `bucket_path`. Reads no more folders than it must: those
/// that can hold keys of the page.
///
/// Errors:
///   kInvalidArgument  a symbolic link leads back to a folder above it
///   kUnavailable, kPermissionDenied, kResourceExhausted  of the file system
/// An entry that vanishes during the walk is not listed.
Result<KeyPage> walk_keys(const std::string& bucket_path, const KeyQuery& query,
                          FolderCache& folders);

}  // namespace leat
