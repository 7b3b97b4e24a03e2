// Memory behind a descriptor, made for others to map and read in place.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "leat/cache/file_ops.h"

namespace leat {

/// Anonymous memory that can grow and be punched but never shrinks, so that it
/// cannot kill a process that has mapped it. A descriptor, or a negated errno.
int make_sealed_memory();

/// True if no read of a mapping of `fd`, up to the end of the file, can kill
/// this process, even if others have a descriptor of it: memory as above, whose
/// holes can be filled and punched again.
bool is_safe_to_map(int fd);

/// True if the kernel always finds a page for a read of a hole, by
/// /proc/sys/vm/overcommit_memory. With strict accounting (2) it may raise
/// SIGBUS.
bool fills_every_hole(std::string_view overcommit_memory);

/// The mapped part of a tier's file.
///
/// Threads: any. Lifetime: `fd` must outlive
/// it.
class SealedMapping {
 public:
  /// Maps the first `most_bytes`, to which the file may yet grow. Null if that
  /// is not safe, or not possible.
  static std::unique_ptr<SealedMapping> open(int fd, std::uint64_t most_bytes,
                                             FileOps& ops);

  /// The address of `length_bytes` from `offset` on; null if not all of them
  /// are mapped, or the file ends before. Others may change them at any time.
  /// Reading a hole gives zeros, and uses memory until it is punched again.
  const std::byte* find(std::uint64_t offset, std::uint64_t length_bytes) const;

 private:
  SealedMapping(int fd, Mapping mapping)
      : fd_(fd), mapping_(std::move(mapping)) {}

  const int fd_;
  const Mapping mapping_;
  mutable std::atomic<std::uint64_t> file_bytes_ = 0;  // Never decreases.
};

}  // namespace leat
