#include "leat/store/file/file_store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <optional>
#include <random>
#include <utility>

#include "leat/base/check.h"
#include "leat/base/errors.h"
#include "leat/base/mutex.h"
#include "leat/runtime/executor.h"
#include "leat/store/file/folder_walk.h"
#include "leat/store/file/rooted_folder.h"
#include "leat/store/page_builder.h"

namespace leat {
namespace {

/// A read looks at its stop token this often.
constexpr std::size_t kStepBytes = 4 << 20;

/// A listing between two of its pages, so that the next one need not walk
/// there again.
struct PausedWalk {
  std::string prefix;
  std::string delimiter;
  std::string resume;
  std::unique_ptr<FolderWalk> walk;
};

/// Makes `file` younger than the one of `name` that it is about to replace. The
/// kernel's time stamps are some milliseconds coarse, and the ETag must differ.
void outdate(const OwnedFd& folder, const std::string& name,
             const OwnedFd& file) {
  struct stat old {};
  struct stat fresh {};
  if (fstatat(folder.get(), name.c_str(), &old, 0) != 0) return;
  if (fstat(file.get(), &fresh) != 0) return;
  const auto key = [](const timespec& time) {
    return std::pair(time.tv_sec, time.tv_nsec);
  };
  if (key(fresh.st_mtim) > key(old.st_mtim)) return;
  timespec later = old.st_mtim;
  if (++later.tv_nsec == 1'000'000'000) later = {later.tv_sec + 1, 0};
  const timespec times[2] = {{.tv_sec = 0, .tv_nsec = UTIME_OMIT}, later};
  futimens(file.get(), times);
}

class FileStore final : public Store {
 public:
  FileStore(RootedFolder root, FileStoreOptions options)
      : options_(std::move(options)),
        root_(std::move(root)),
        readers_(options_.readers != nullptr
                     ? options_.readers
                     : std::make_shared<Executor>(
                           "leat-file",
                           std::max<std::size_t>(1, options_.threads))) {}

  ~FileStore() override { LEAT_CHECK(reads_ == 0); }

  void read(ReadRequest request, std::stop_token stop, ReadDone done) override {
    ++reads_;
    readers_->submit(
        0, [this, request = std::move(request), stop = std::move(stop),
            done = std::move(done)](std::size_t) {
          Result<void> result = read_now(request, stop);
          --reads_;
          done(std::move(result));  // After this the store may be gone.
        });
  }

  Result<ListPage> list(const ListRequest& request,
                        std::stop_token stop) override;
  Result<ObjectInfo> write(std::string_view key,
                           std::span<const std::byte> bytes,
                           std::stop_token stop) override;

  Result<ObjectInfo> stat(std::string_view key, std::stop_token stop) override {
    if (stop.stop_requested()) return cancelled(key);
    struct stat status {};
    LEAT_TRY(const OwnedFd file, root_.open_file(key, status));
    return info_of(key, status);
  }

  StoreTraits traits() const override {
    return {.best_read_bytes = 1 << 20,
            .can_list = true,
            .can_write = true,
            .has_etags = true};
  }

  std::string url_of(std::string_view key) const override {
    const std::string path = root_.path_of(key);
    return path.starts_with('/') ? "file://" + path : path;
  }

 private:
  Error cancelled(std::string_view key) const {
    return Error(ErrorCode::kCancelled, url_of(key) + ": cancelled");
  }

  Result<void> read_now(const ReadRequest& request,
                        const std::stop_token& stop) const;
  Result<void> write_and_rename(const OwnedFd& folder, const std::string& name,
                                std::string_view key,
                                std::span<const std::byte> bytes,
                                const std::stop_token& stop) const;
  std::unique_ptr<FolderWalk> take_walk(const ListRequest& request);

  const FileStoreOptions options_;
  const RootedFolder root_;
  std::atomic<std::size_t> reads_ = 0;
  std::atomic<std::uint64_t> writes_ = 0;

  Mutex mutex_;
  std::optional<PausedWalk> paused_ LEAT_GUARDED_BY(mutex_);

  std::shared_ptr<Executor> readers_;  // Last: joined before the rest dies.
};

Result<void> FileStore::read_now(const ReadRequest& request,
                                 const std::stop_token& stop) const {
  const std::string& key = request.object.key;
  if (stop.stop_requested()) return cancelled(key);
  struct stat status {};
  LEAT_TRY(const OwnedFd file, root_.open_file(key, status));
  const ObjectInfo info = info_of(key, status);
  if (!request.object.etag.empty() && request.object.etag != info.etag) {
    return corrupt(url_of(key) +
                   ": the file changed since it was indexed; index again");
  }
  if (auto same = check_object_size(request.object, info.size_bytes); !same) {
    return std::move(same).error().while_doing(url_of(key));
  }
  // Written so that a huge offset cannot wrap around.
  if (request.into.empty() || request.offset >= info.size_bytes ||
      request.into.size() > info.size_bytes - request.offset) {
    return invalid("{}: a range of {} bytes at {} is not within its {} bytes",
                   url_of(key), request.into.size(), request.offset,
                   info.size_bytes);
  }
  std::size_t filled = 0;
  while (filled < request.into.size()) {
    if (stop.stop_requested()) return cancelled(key);
    const ssize_t got =
        pread(file.get(), request.into.data() + filled,
              std::min(kStepBytes, request.into.size() - filled),
              static_cast<off_t>(request.offset + filled));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return error_of_errno(errno, url_of(key));
    if (got == 0) {
      return corrupt(url_of(key) + ": the file was cut while it was read");
    }
    filled += static_cast<std::size_t>(got);
  }
  return {};
}

Result<ListPage> FileStore::list(const ListRequest& request,
                                 std::stop_token stop) {
  PageBuilder page(request, options_.most_keys_per_page);
  std::unique_ptr<FolderWalk> walk = take_walk(request);
  while (!page.is_past_the_end()) {
    LEAT_TRY(ObjectInfo object, walk->next(page.from(), stop));
    if (object.key.empty()) break;
    const auto verdict = page.offer(object.key);
    if (verdict == PageBuilder::Verdict::kFull) {
      walk->put_back(std::move(object));
      break;
    }
    if (verdict == PageBuilder::Verdict::kTake) page.add(std::move(object));
  }
  ListPage result = std::move(page).finish();
  if (!result.resume.empty()) {
    const MutexLock lock(mutex_);
    paused_ = PausedWalk{.prefix = request.prefix,
                         .delimiter = request.delimiter,
                         .resume = result.resume,
                         .walk = std::move(walk)};
  }
  return result;
}

std::unique_ptr<FolderWalk> FileStore::take_walk(const ListRequest& request) {
  {
    const MutexLock lock(mutex_);
    if (paused_ && !request.resume.empty() &&
        paused_->resume == request.resume &&
        paused_->prefix == request.prefix &&
        paused_->delimiter == request.delimiter) {
      auto walk = std::move(paused_->walk);
      paused_.reset();
      return walk;
    }
  }
  return std::make_unique<FolderWalk>(root_, request.prefix);
}

Result<ObjectInfo> FileStore::write(std::string_view key,
                                    std::span<const std::byte> bytes,
                                    std::stop_token stop) {
  const std::size_t slash = key.rfind('/');
  const std::string name(key.substr(slash + 1));  // npos + 1 is 0.
  if (!is_key_of_a_file(key) || name.starts_with(kTemporaryPrefix)) {
    return invalid("'{}' cannot be the key of a file below {}", key,
                   root_.path_of(""));
  }
  LEAT_TRY(const OwnedFd folder,
           root_.make_folder(slash == std::string_view::npos
                                 ? std::string_view()
                                 : key.substr(0, slash)));
  const std::string temporary =
      fmt::format("{}{}-{}-{:08x}", kTemporaryPrefix, getpid(), ++writes_,
                  std::random_device()());
  auto written = write_and_rename(folder, temporary, key, bytes, stop);
  if (!written) {
    unlinkat(folder.get(), temporary.c_str(), 0);
    return std::move(written).error();
  }
  return stat(key, std::move(stop));
}

Result<void> FileStore::write_and_rename(const OwnedFd& folder,
                                         const std::string& name,
                                         std::string_view key,
                                         std::span<const std::byte> bytes,
                                         const std::stop_token& stop) const {
  const OwnedFd file(openat(folder.get(), name.c_str(),
                            O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666));
  if (!file) return error_of_errno(errno, url_of(key));
  while (!bytes.empty()) {
    if (stop.stop_requested()) return cancelled(key);
    const ssize_t put =
        ::write(file.get(), bytes.data(), std::min(kStepBytes, bytes.size()));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return error_of_errno(errno, url_of(key));
    bytes = bytes.subspan(static_cast<std::size_t>(put));
  }
  const std::string final_name(key.substr(key.rfind('/') + 1));
  outdate(folder, final_name, file);
  // Before the name: a crash must not leave the name with half the bytes.
  if (fsync(file.get()) != 0) return error_of_errno(errno, url_of(key));
  if (renameat(folder.get(), name.c_str(), folder.get(), final_name.c_str()) !=
      0) {
    return error_of_errno(errno, url_of(key));
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Store>> open_file_store(const std::string& root,
                                               FileStoreOptions options) {
  LEAT_TRY(RootedFolder folder, RootedFolder::open(root));
  return std::unique_ptr<Store>(
      std::make_unique<FileStore>(std::move(folder), options));
}

}  // namespace leat
