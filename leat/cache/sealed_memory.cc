// Why a mapping of what another process hands us cannot end this one. A read of
// it is answered by SIGBUS where the file has ended, and where the kernel has
// no page for a hole. The first cannot be below a size that was seen once: the
// seal says so, and cannot be taken off. The second happens where memory is
// strictly accounted, or the pages are huge ones of a pool: neither is mapped.

#include "leat/cache/sealed_memory.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "leat/base/owned_fd.h"

namespace leat {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_SEAL;
/// With either of these no hole could be punched.
constexpr int kNotOurs = F_SEAL_WRITE | F_SEAL_FUTURE_WRITE;

bool fills_every_hole_here() {
  const OwnedFd file(
      ::open("/proc/sys/vm/overcommit_memory", O_RDONLY | O_CLOEXEC));
  std::array<char, 16> text;
  const ssize_t got =
      file ? ::read(file.get(), text.data(), text.size()) : ssize_t{-1};
  return got > 0 && fills_every_hole(std::string_view(
                        text.data(), static_cast<std::size_t>(got)));
}

}  // namespace

int make_sealed_memory() {
  const int fd =
      ::memfd_create("leat-segment", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) return -errno;
  // Without the seal it is read by pread().
  (void)::fcntl(fd, F_ADD_SEALS, kSeals);
  return fd;
}

bool fills_every_hole(std::string_view overcommit_memory) {
  return overcommit_memory.starts_with('0') ||
         overcommit_memory.starts_with('1');
}

bool is_safe_to_map(int fd) {
  struct statfs where {};
  if (::fstatfs(fd, &where) != 0 || where.f_type != TMPFS_MAGIC) return false;
  const int seals = ::fcntl(fd, F_GET_SEALS);
  return seals >= 0 && (seals & kSeals) == kSeals && (seals & kNotOurs) == 0 &&
         fills_every_hole_here();
}

std::unique_ptr<SealedMapping> SealedMapping::open(int fd,
                                                   std::uint64_t most_bytes,
                                                   FileOps& ops) {
  if (!is_safe_to_map(fd)) return nullptr;
  Mapping mapping;
  if (ops.map(fd, most_bytes, mapping) != 0) return nullptr;
  return std::unique_ptr<SealedMapping>(
      new SealedMapping(fd, std::move(mapping)));
}

const std::byte* SealedMapping::find(std::uint64_t offset,
                                     std::uint64_t length_bytes) const {
  const std::span<const std::byte> bytes = mapping_.bytes();
  if (offset > bytes.size() || length_bytes > bytes.size() - offset) {
    return nullptr;
  }
  const std::uint64_t end = offset + length_bytes;
  if (end > file_bytes_.load(std::memory_order_relaxed)) {
    struct stat now {};
    if (::fstat(fd_, &now) != 0 || now.st_size < 0) return nullptr;
    const auto size = static_cast<std::uint64_t>(now.st_size);
    file_bytes_.store(size, std::memory_order_relaxed);
    if (end > size) return nullptr;
  }
  return bytes.data() + offset;
}

}  // namespace leat
