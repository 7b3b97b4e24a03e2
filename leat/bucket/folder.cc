#include "leat/bucket/folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "leat/base/errors.h"
#include "leat/base/system_error.h"
#include "leat/bucket/object_note.h"
#include "leat/bucket/open_folder.h"

namespace leat {
namespace {

constexpr std::size_t kMostKeyBytes = 1024;     // S3's limit.
constexpr std::size_t kMostSegmentBytes = 255;  // The file system's.
constexpr int kTries = 8;

/// Says not where to: the client need not know.
Error leads_out() {
  return invalid("a symbolic link leads out of the folder that is served");
}

bool can_be_file(std::string_view segment) {
  return !segment.empty() && segment != "." && segment != ".." &&
         segment.size() <= kMostSegmentBytes &&
         segment.find('\0') == std::string_view::npos;
}

ObjectState state_of(const struct stat& status) {
  ObjectState state;
  state.size_bytes = static_cast<std::uint64_t>(status.st_size);
  state.modified_ns = std::int64_t(status.st_mtim.tv_sec) * 1'000'000'000 +
                      status.st_mtim.tv_nsec;
  return state;
}

Result<void> check_is_object(const struct stat& status) {
  if (S_ISREG(status.st_mode)) return {};
  return not_found("the key is no file");
}

}  // namespace

Result<Folder> Folder::open(const std::string& path, std::string_view repeat) {
  struct stat status;
  if (::stat(path.c_str(), &status) != 0) {
    return system_error(errno, fmt::format("folder {}", path));
  }
  if (!S_ISDIR(status.st_mode)) {
    return invalid("{} is not a folder; give one whose folders are the buckets",
                   path);
  }
  LEAT_TRY(RootedFolder root, RootedFolder::open(path));
  Folder folder(path, std::move(root));
  if (!repeat.empty()) {
    LEAT_TRY(folder.repeat_, Repeat::parse(repeat, path));
    LEAT_TRY_VOID(object_state(folder.repeat_->source()));
  }
  remove_dead_drafts(folder.drafts_path());
  return folder;
}

Result<std::string> Folder::bucket_path(std::string_view bucket) const {
  LEAT_TRY(std::string path, named_path(bucket));
  LEAT_TRY_VOID(check_inside(path));
  return path;
}

Result<std::string> Folder::object_path(std::string_view bucket,
                                        std::string_view key) const {
  LEAT_TRY(std::string path, listed_path(bucket, key));
  LEAT_TRY_VOID(check_inside(path));
  return path;
}

Result<void> Folder::check_inside(std::string_view path) const {
  LEAT_TRY(const bool inside, is_inside(path));
  if (!inside) return leads_out();
  return {};
}

Result<bool> Folder::is_inside(std::string_view path) const {
  std::string_view key = path.substr(std::min(path_.size() + 1, path.size()));
  while (!key.empty()) {
    Result<OwnedFd> found = root_->open_at(key, O_PATH);
    if (found) return true;
    if (found.error().code() == ErrorCode::kInvalidArgument) return false;
    if (found.error().code() != ErrorCode::kNotFound) {
      return std::move(found).error();
    }
    const std::size_t slash = key.rfind('/');
    key = slash == std::string_view::npos ? "" : key.substr(0, slash);
  }
  return true;
}

Result<std::string> Folder::named_path(std::string_view bucket) const {
  // A name that begins with a dot is ours, or no bucket of anybody's.
  if (!can_be_file(bucket) || bucket.starts_with('.') ||
      bucket.find('/') != std::string_view::npos) {
    return invalid("'{}' cannot be a bucket", bucket);
  }
  return fmt::format("{}/{}", path_, bucket);
}

Result<std::string> Folder::listed_path(std::string_view bucket,
                                        std::string_view key) const {
  LEAT_TRY(std::string path, named_path(bucket));
  if (key.size() > kMostKeyBytes) {
    return invalid("the key is longer than 1024 bytes");
  }
  path += '/';
  path += key;
  while (true) {
    const std::size_t slash = key.find('/');
    if (!can_be_file(key.substr(0, slash))) {
      return invalid(
          "this server keeps objects as files: between its slashes a key needs "
          "1 to 255 bytes that are not '.' or '..'");
    }
    if (slash == std::string_view::npos) {
      return repeat_ ? repeat_->file_of(std::move(path)) : path;
    }
    key.remove_prefix(slash + 1);
  }
}

Result<std::vector<Folder::Bucket>> Folder::buckets() const {
  const OpenFolder folder(::opendir(path_.c_str()));
  if (!folder) return system_error(errno, "reading the folder");
  std::vector<Bucket> buckets;
  while (const dirent* entry = ::readdir(folder.get())) {
    struct stat status;
    auto path = bucket_path(entry->d_name);
    if (!path && path.error().code() != ErrorCode::kInvalidArgument) {
      return std::move(path).error();
    }
    if (!path || ::stat(path->c_str(), &status) != 0) continue;
    if (!S_ISDIR(status.st_mode)) continue;
    buckets.push_back({entry->d_name, state_of(status).modified_ns});
  }
  std::sort(buckets.begin(), buckets.end(),
            [](const Bucket& a, const Bucket& b) { return a.name < b.name; });
  return buckets;
}

Result<void> Folder::create_bucket(std::string_view bucket) const {
  LEAT_TRY(const std::string path, bucket_path(bucket));
  if (::mkdir(path.c_str(), 0777) == 0) return {};
  return system_error(errno, "creating the bucket");
}

Result<void> Folder::remove_bucket(std::string_view bucket) const {
  LEAT_TRY(const std::string path, bucket_path(bucket));
  if (::rmdir(path.c_str()) == 0) return {};
  return system_error(errno, "removing the bucket");
}

Result<DraftObject> Folder::begin_object() const {
  LEAT_TRY_VOID(make_parents(drafts_path() + "/draft", path_.size()));
  return DraftObject::begin(drafts_path());
}

Result<ObjectState> Folder::publish(DraftObject draft, const std::string& path,
                                    std::string etag,
                                    std::string headers) const {
  struct stat status;
  if (::fstat(draft.file().descriptor(), &status) != 0) {
    return system_error(errno, "publishing the object");
  }
  ObjectState state = state_of(status);
  state.etag = std::move(etag);
  state.headers = std::move(headers);
  LEAT_TRY_VOID(write_object_note(draft.file().descriptor(), state));
  const std::size_t bucket_bytes = path.find('/', path_.size() + 1);
  // Tries again if another request has removed a parent folder that
  // had become empty.
  for (int tries = 0; tries < kTries; ++tries) {
    if (auto made = make_parents(path, bucket_bytes); !made) {
      if (made.error().code() != ErrorCode::kNotFound) return made.error();
      errno = ENOENT;
      continue;
    }
    if (::rename(draft.path().c_str(), path.c_str()) == 0) {
      draft.release();
      // Returns the state that later reads will see: the file system may not
      // have kept the note.
      read_object_note(draft.file().descriptor(), path, state);
      return state;
    }
    if (errno != ENOENT) break;
  }
  if (errno == EISDIR || errno == ENOTDIR || errno == ENOTEMPTY) {
    return invalid("the key is a folder, or a file is in its way");
  }
  return system_error(errno, "publishing the object");
}

Result<void> Folder::make_parents(const std::string& path,
                                  std::size_t top_bytes) {
  const std::string parent = path.substr(0, path.rfind('/'));
  if (parent.size() <= top_bytes) return {};
  if (::mkdir(parent.c_str(), 0777) == 0 || errno == EEXIST) return {};
  if (errno == ENOTDIR) {
    return invalid("a file is where the key needs a folder");
  }
  if (errno != ENOENT) return system_error(errno, "making a folder");
  LEAT_TRY_VOID(make_parents(parent, top_bytes));
  if (::mkdir(parent.c_str(), 0777) == 0 || errno == EEXIST) return {};
  return system_error(errno, "making a folder");
}

Result<void> Folder::remove_object(std::string_view bucket,
                                   std::string_view key) const {
  LEAT_TRY(std::string path, object_path(bucket, key));
  LEAT_TRY(const std::string top, bucket_path(bucket));
  if (repeat_ && path == repeat_->source()) {
    return denied(
        "one file is {} objects here (--repeat), and deleting one would delete "
        "all; remove the file itself",
        repeat_->count());
  }
  if (::unlink(path.c_str()) != 0) {
    // A folder is no object, so there is none.
    if (errno == ENOENT || errno == ENOTDIR || errno == EISDIR) return {};
    return system_error(errno, "removing the object");
  }
  while (true) {
    path.resize(path.rfind('/'));
    if (path.size() <= top.size() || ::rmdir(path.c_str()) != 0) return {};
  }
}

Result<OpenObject> open_object(const std::string& path) {
  // Not to hang on a named pipe: O_NONBLOCK means nothing to a file.
  auto file = std::make_shared<const OpenFile>(
      ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file->is_open()) return system_error(errno, "opening the object");
  struct stat status;
  if (::fstat(file->descriptor(), &status) != 0) {
    return system_error(errno, "opening the object");
  }
  LEAT_TRY_VOID(check_is_object(status));
  OpenObject object{std::move(file), state_of(status)};
  read_object_note(object.file->descriptor(), path, object.state);
  return object;
}

Result<ObjectState> object_state(const std::string& path) {
  struct stat status;
  if (::stat(path.c_str(), &status) != 0) {
    return system_error(errno, "looking at the object");
  }
  LEAT_TRY_VOID(check_is_object(status));
  ObjectState state = state_of(status);
  read_object_note(-1, path, state);
  return state;
}

}  // namespace leat
