// The system calls that a tier depends on, so that tests can fail each of them.
#pragma once
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

namespace leat {

/// Bytes of a file mapped for reading into this process; destruction unmaps
/// them.
class Mapping {
 public:
  Mapping() = default;
  /// The result of mmap().
  Mapping(void* at, std::size_t length_bytes)
      : bytes_(static_cast<const std::byte*>(at), length_bytes) {}
  ~Mapping();
  Mapping(Mapping&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

/// Each returns what the system call of that name does, but the negated errno
/// in place of -1; none is interrupted.
///
/// Threads: any.
class FileOps {
 public:
  virtual ~FileOps() = default;
  virtual int open(const std::string& path, int flags, mode_t mode) = 0;
  virtual ssize_t pread(int fd, std::span<std::byte> into,
                        std::uint64_t offset) = 0;
  virtual ssize_t pwrite(int fd, std::span<const std::byte> bytes,
                         std::uint64_t offset) = 0;
  /// fallocate() that punches a hole and keeps the size: the bytes become zero
  /// and take no room.
  virtual int punch(int fd, std::uint64_t offset, std::uint64_t length) = 0;
  virtual int unlink(const std::string& path) = 0;
  /// mmap() of the first `length` bytes, shared, into `mapping`; 0 or an errno.
  /// The file may be shorter; bytes past its end must not be read.
  virtual int map(int fd, std::uint64_t length, Mapping& mapping) = 0;
};

/// The real system calls.
class SystemFileOps : public FileOps {
 public:
  int open(const std::string& path, int flags, mode_t mode) override;
  ssize_t pread(int fd, std::span<std::byte> into,
                std::uint64_t offset) override;
  ssize_t pwrite(int fd, std::span<const std::byte> bytes,
                 std::uint64_t offset) override;
  int punch(int fd, std::uint64_t offset, std::uint64_t length) override;
  int unlink(const std::string& path) override;
  int map(int fd, std::uint64_t length, Mapping& mapping) override;
};

/// Reads all of `into`; 0, or a negated errno: -ENODATA if the file ends early.
int read_all(FileOps& ops, int fd, std::span<std::byte> into,
             std::uint64_t offset);
/// Writes all of `bytes`; 0, or a negated errno.
int write_all(FileOps& ops, int fd, std::span<const std::byte> bytes,
              std::uint64_t offset);

}  // namespace leat
