// The files of a folder as objects.
#pragma once
#include <cstddef>
#include <memory>
#include <string>

#include "leat/base/result.h"
#include "leat/runtime/executor.h"
#include "leat/store/store.h"

namespace leat {

struct FileStoreOptions {
  static constexpr std::size_t kUsualThreads = 4;
  /// Threads that read; each waits for one disk request at a time.
  std::size_t threads = kUsualThreads;
  /// Reads in place of these, for several stores; null: they have their own.
  std::shared_ptr<Executor> readers = nullptr;
  std::size_t most_keys_per_page = 10'000;
};

/// A store over the folder `root`: the key of a file is its path below it, with
/// '/' between folders. Lists in byte order of keys, as S3 does.
///
/// An ETag consists of size and time of modification, so a replaced file
/// differs from the indexed one, unless a program replaces it within one tick
/// of the kernel's clock (some milliseconds) by one of equal size. A write goes
/// to a temporary file, which is then renamed. Keys with empty, "." or ".."
/// parts are refused; a symbolic link is followed as long as it stays under the
/// root.
///
/// Errors:
///   kNotFound          there is no such folder
///   kInvalidArgument   it is not a folder
///   kPermissionDenied  it may not be read
Result<std::unique_ptr<Store>> open_file_store(const std::string& root,
                                               FileStoreOptions options = {});

}  // namespace leat
