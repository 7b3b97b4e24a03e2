// Memory behind a descriptor, made so that others may read it where it lies.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "leat/cache/file_ops.h"

namespace leat {

/// Anonymous memory that grows and can be punched, but never shrinks: so who
/// has mapped it cannot be killed by it. A descriptor, or a negated errno.
int make_sealed_memory();

/// True if no read of a mapping of `fd`, up to the end of the file, can end
/// this process, even if others have a descriptor of it: memory as above, whose
/// holes can be filled and punched again.
bool is_safe_to_map(int fd);

/// True if the kernel finds a page for a read of a hole, by
/// /proc/sys/vm/overcommit_memory. With strict accounts (2) it may answer by
/// SIGBUS.
bool fills_every_hole(std::string_view overcommit_memory);

/// A file of a tier in our address space, as far as it is mapped.
///
/// Threads:  any.
/// Lifetime: `fd` outlives it.
class SealedMapping {
 public:
  /// Maps the first `most_bytes`, though the file may yet grow to that. Null
  /// where it is not safe, or cannot be.
  static std::unique_ptr<SealedMapping> open(int fd, std::uint64_t most_bytes,
                                             FileOps& ops);

  /// The address of `length_bytes` from `offset` on; null if not all are
  /// mapped, or the file ends before. Others may change them at any time.
  /// Reading a hole gives zeros, and takes memory until it is punched again.
  const std::byte* find(std::uint64_t offset, std::uint64_t length_bytes) const;

 private:
  SealedMapping(int fd, Mapping mapping)
      : fd_(fd), mapping_(std::move(mapping)) {}

  const int fd_;
  const Mapping mapping_;
  mutable std::atomic<std::uint64_t> file_bytes_ = 0;  // It never falls.
};

}  // namespace leat
