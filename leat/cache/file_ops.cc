#include "leat/cache/file_ops.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

namespace leat {
namespace {

template <class Call>
auto uninterrupted(const Call& call) -> decltype(call()) {
  while (true) {
    const auto result = call();
    if (result >= 0) return result;
    if (errno != EINTR) return -errno;
  }
}

}  // namespace

int SystemFileOps::open(const std::string& path, int flags, mode_t mode) {
  return uninterrupted(
      [&] { return ::open(path.c_str(), flags | O_CLOEXEC, mode); });
}

ssize_t SystemFileOps::pread(int fd, std::span<std::byte> into,
                             std::uint64_t offset) {
  return uninterrupted([&] {
    return ::pread(fd, into.data(), into.size(), static_cast<off_t>(offset));
  });
}

ssize_t SystemFileOps::pwrite(int fd, std::span<const std::byte> bytes,
                              std::uint64_t offset) {
  return uninterrupted([&] {
    return ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
  });
}

int SystemFileOps::punch(int fd, std::uint64_t offset, std::uint64_t length) {
  return uninterrupted([&] {
    return ::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                       static_cast<off_t>(offset), static_cast<off_t>(length));
  });
}

int SystemFileOps::unlink(const std::string& path) {
  return uninterrupted([&] { return ::unlink(path.c_str()); });
}

int SystemFileOps::map(int fd, std::uint64_t length, Mapping& mapping) {
  void* const at =
      ::mmap(nullptr, length, PROT_READ, MAP_SHARED | MAP_NORESERVE, fd, 0);
  if (at == MAP_FAILED) return -errno;
  mapping = Mapping(at, length);
  (void)::madvise(at, length, MADV_DONTDUMP);  // A core dump would hold it all.
  return 0;
}

Mapping::~Mapping() {
  if (bytes_.empty()) return;
  (void)::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

int read_all(FileOps& ops, int fd, std::span<std::byte> into,
             std::uint64_t offset) {
  while (!into.empty()) {
    const ssize_t got = ops.pread(fd, into, offset);
    if (got < 0) return static_cast<int>(got);
    if (got == 0) return -ENODATA;
    into = into.subspan(static_cast<std::size_t>(got));
    offset += static_cast<std::uint64_t>(got);
  }
  return 0;
}

int write_all(FileOps& ops, int fd, std::span<const std::byte> bytes,
              std::uint64_t offset) {
  while (!bytes.empty()) {
    const ssize_t put = ops.pwrite(fd, bytes, offset);
    if (put < 0) return static_cast<int>(put);
    if (put == 0) return -EIO;
    bytes = bytes.subspan(static_cast<std::size_t>(put));
    offset += static_cast<std::uint64_t>(put);
  }
  return 0;
}

}  // namespace leat
