// The folder that the runs of a profile write to.
#pragma once
#include <sys/types.h>

#include <filesystem>
#include <utility>

#include "leat/base/owned_fd.h"
#include "leat/base/result.h"

namespace leat {

/// A new temporary folder that is removed with its owner, however the owner
/// ends, SIGKILL included: a process of ours waits until nobody holds the
/// folder any more, and removes it then. A process that may still write into it
/// after its owner has died holds it too (child.h).
///
/// Threads:  one.
/// Lifetime: destruction waits until all who hold it have ended, and it is
///           removed.
class RunFolder {
 public:
  /// Forks: to call before there are threads.
  ///
  /// Errors:
  ///   as system_error  no folder can be made in the temporary one, or no
  ///                    process
  static Result<RunFolder> make();
  ~RunFolder();
  RunFolder(RunFolder&& other) noexcept;
  RunFolder& operator=(RunFolder&&) = delete;

  const std::filesystem::path& path() const { return path_; }
  /// The folder stays for as long as this is open in any process.
  int held() const { return held_.get(); }

 private:
  explicit RunFolder(std::filesystem::path path) : path_(std::move(path)) {}
  Result<void> guard();

  std::filesystem::path path_;
  OwnedFd held_;
  pid_t guard_ = 0;  ///< 0: there is none, or it was moved away.
};

}  // namespace leat
