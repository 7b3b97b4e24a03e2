// Files on their way to become objects.
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "leat/base/result.h"
#include "leat/serve/open_file.h"

namespace leat {

/// A file that is not yet an object; unlinked unless it becomes one. It holds
/// an flock on its file, so that other servers see that it is in use.
class DraftObject {
 public:
  /// A new, empty file in `folder`, with a name that no other has.
  /// Errors: kNotFound (no such folder), kPermissionDenied, kResourceExhausted,
  /// kUnavailable.
  static Result<DraftObject> begin(const std::string& folder);
  DraftObject(DraftObject&& other) noexcept
      : file_(std::move(other.file_)),
        path_(std::exchange(other.path_, std::string())) {}
  DraftObject& operator=(DraftObject&&) = delete;
  ~DraftObject();

  /// Appends. Errors: kResourceExhausted, kUnavailable.
  Result<void> write(std::span<const std::byte> bytes);
  /// Appends all of `from`, which nobody has read yet. Errors: as write.
  Result<void> append_file(const OpenFile& from);

  const OpenFile& file() const { return file_; }
  const std::string& path() const { return path_; }
  /// The path is somebody else's from now on.
  void release() { path_.clear(); }

 private:
  DraftObject(OpenFile file, std::string path)
      : file_(std::move(file)), path_(std::move(path)) {}

  OpenFile file_;
  std::string path_;
};

/// Removes the drafts in `folder` that no DraftObject holds, in any process: a
/// server that was killed left them. A file that cannot be looked at stays.
void remove_dead_drafts(const std::string& folder);

}  // namespace leat
