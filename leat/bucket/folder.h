// A folder as buckets: its top folders are buckets, the files below are
// objects.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "leat/base/result.h"
#include "leat/bucket/draft_object.h"
#include "leat/bucket/repeat.h"
#include "leat/serve/open_file.h"
#include "leat/store/file/rooted_folder.h"

namespace leat {

/// The properties of an object that are known without reading it.
struct ObjectState {
  std::uint64_t size_bytes = 0;
  std::int64_t modified_ns = 0;  ///< Since 1970.
  /// 32 hexadecimal digits, for parts "-N" behind them; no quotes.
  ///
  /// For an object put through us: the MD5 that S3 would give, kept in the
  /// file's extended attributes beside the file's size and time then. For any
  /// other file: a hash of its size and time, so that nothing has to be read.
  std::string etag;
  /// "Content-Type: …\r\nx-amz-meta-…: …\r\n" as it was put; may be empty.
  std::string headers;
};

struct OpenObject {
  std::shared_ptr<const OpenFile> file;
  ObjectState state;
};

/// Opens, puts and removes objects. Paths come from keys, and keys from
/// strangers: a key with an empty, `.` or `..` segment is refused, and so is
/// one that a symbolic link leads out of the folder.
///
/// Errors, of all that return a Result:
///   kNotFound           no such bucket or object
///   kInvalidArgument    a name that cannot be a file; a key where a folder is
///   kPermissionDenied   the file system refuses
///   kResourceExhausted  no space, no descriptors
///   kUnavailable        any other failure of the file system
///
/// Threads: any.
class Folder {
 public:
  /// Removes the drafts of servers that were killed.
  /// Errors: kNotFound, kInvalidArgument: `path` is not a folder.
  /// `repeat` is a Repeat of a file in it, or empty; kInvalidArgument if it is
  /// neither, kNotFound if there is no such file.
  static Result<Folder> open(const std::string& path,
                             std::string_view repeat = "");

  const std::optional<Repeat>& repeat() const { return repeat_; }

  Result<std::string> bucket_path(std::string_view bucket) const;
  Result<std::string> object_path(std::string_view bucket,
                                  std::string_view key) const;
  /// The same, of a key that a listing has found: no link is looked at.
  Result<std::string> listed_path(std::string_view bucket,
                                  std::string_view key) const;
  /// False if a symbolic link leads from `path`, which begins with the folder,
  /// out of it. If it does not exist, the part of it that exists counts. An
  /// error is no answer: the file system did not let us look.
  Result<bool> is_inside(std::string_view path) const;

  struct Bucket {
    std::string name;
    std::int64_t created_ns = 0;
  };
  /// In byte order of the names.
  Result<std::vector<Bucket>> buckets() const;
  /// kInvalidArgument if it exists already.
  Result<void> create_bucket(std::string_view bucket) const;
  /// kInvalidArgument if objects are in it.
  Result<void> remove_bucket(std::string_view bucket) const;

  Result<DraftObject> begin_object() const;
  /// Makes `draft` the object at `path`, whole or not at all. Makes the folders
  /// that the key needs, and no bucket.
  Result<ObjectState> publish(DraftObject draft, const std::string& path,
                              std::string etag, std::string headers) const;
  /// Also removes the folders that this leaves empty. A missing
  /// object is not an error. kPermissionDenied for one of a Repeat.
  Result<void> remove_object(std::string_view bucket,
                             std::string_view key) const;

  /// A folder of ours, for data that is not yet an object.
  std::string work_path() const { return path_ + "/.leat"; }

 private:
  Folder(std::string path, RootedFolder root)
      : path_(std::move(path)),
        root_(std::make_shared<const RootedFolder>(std::move(root))) {}
  std::string drafts_path() const { return work_path() + "/drafts"; }
  Result<std::string> named_path(std::string_view bucket) const;
  Result<void> check_inside(std::string_view path) const;
  /// Those between `top_bytes` of `path`, a folder that exists, and its end.
  static Result<void> make_parents(const std::string& path,
                                   std::size_t top_bytes);

  std::string path_;
  std::shared_ptr<const RootedFolder> root_;
  std::optional<Repeat> repeat_;
};

/// Opens the object at `path`. Errors: as Folder.
Result<OpenObject> open_object(const std::string& path);
/// Its state alone. Errors: as Folder.
Result<ObjectState> object_state(const std::string& path);

}  // namespace leat
