#include "leat/profiler/page_cache.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace leat {
namespace {

class OpenedFile {
 public:
  explicit OpenedFile(const std::filesystem::path& path)
      : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOATIME)) {
    if (fd_ < 0) fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat info {};
    if (fd_ >= 0 && ::fstat(fd_, &info) == 0 && S_ISREG(info.st_mode)) {
      size_bytes_ = static_cast<std::uint64_t>(info.st_size);
    }
  }
  ~OpenedFile() {
    if (fd_ >= 0) ::close(fd_);
  }
  OpenedFile(const OpenedFile&) = delete;
  OpenedFile& operator=(const OpenedFile&) = delete;

  int fd() const { return fd_; }
  /// 0 if it could not be opened.
  std::uint64_t size_bytes() const { return size_bytes_; }

 private:
  int fd_;
  std::uint64_t size_bytes_ = 0;
};

std::uint64_t resident_bytes(const OpenedFile& file) {
  constexpr std::uint64_t kPieceBytes = std::uint64_t{1} << 30;
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  std::uint64_t resident = 0;
  std::vector<unsigned char> pages;
  for (std::uint64_t at = 0; at < file.size_bytes(); at += kPieceBytes) {
    const std::uint64_t length = std::min(kPieceBytes, file.size_bytes() - at);
    void* mapped = ::mmap(nullptr, length, PROT_READ, MAP_SHARED, file.fd(),
                          static_cast<off_t>(at));
    if (mapped == MAP_FAILED) continue;
    pages.assign((length + page - 1) / page, 0);
    if (::mincore(mapped, length, pages.data()) == 0) {
      for (std::size_t i = 0; i < pages.size(); ++i) {
        if ((pages[i] & 1) != 0) resident += std::min(page, length - i * page);
      }
    }
    ::munmap(mapped, length);
  }
  return resident;
}

}  // namespace

Residency residency_of(std::span<const std::filesystem::path> files) {
  Residency sum;
  for (const std::filesystem::path& path : files) {
    const OpenedFile file(path);
    if (file.size_bytes() == 0) continue;
    sum.bytes += file.size_bytes();
    sum.resident_bytes += resident_bytes(file);
  }
  return sum;
}

void drop_from_page_cache(std::span<const std::filesystem::path> files) {
  for (const std::filesystem::path& path : files) {
    const OpenedFile file(path);
    if (file.size_bytes() == 0) continue;
    ::fdatasync(file.fd());  // Dirty pages stay.
    ::posix_fadvise(file.fd(), 0, 0, POSIX_FADV_DONTNEED);
  }
}

Result<void> read_into_page_cache(std::span<const std::filesystem::path> files,
                                  const std::stop_token& stop) {
  std::vector<char> piece(std::size_t{1} << 20);
  for (const std::filesystem::path& path : files) {
    const OpenedFile file(path);
    for (std::uint64_t at = 0; at < file.size_bytes();) {
      if (stop.stop_requested()) {
        return Error(ErrorCode::kCancelled, "interrupted");
      }
      const ssize_t got = ::pread(file.fd(), piece.data(), piece.size(),
                                  static_cast<off_t>(at));
      if (got <= 0) break;
      at += static_cast<std::uint64_t>(got);
    }
  }
  return {};
}

KeptPages::KeptPages(std::span<const std::filesystem::path> files,
                     std::uint64_t most_bytes) {
  // A process may have 65,530 mappings, and needs some for itself.
  constexpr std::size_t kMostMappings = 30'000;
  for (const std::filesystem::path& path : files) {
    const OpenedFile file(path);
    const std::uint64_t size = file.size_bytes();
    if (size == 0) continue;
    if (bytes_ + size > most_bytes || mapped_.size() == kMostMappings) return;
    void* const mapped =
        ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file.fd(), 0);
    if (mapped == MAP_FAILED) return;
    // Avoids mlock(2): the sanitizers replace it by a function
    // that does nothing.
    if (::mlock2(mapped, size, 0) != 0) {
      ::munmap(mapped, size);
      return;
    }
    mapped_.emplace_back(mapped, size);
    bytes_ += size;
  }
}

KeptPages::~KeptPages() {
  for (const auto& [mapped, size] : mapped_) ::munmap(mapped, size);
}

}  // namespace leat
