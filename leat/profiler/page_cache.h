// The kernel's page cache: how much of some files it holds, and changing that.
#pragma once
#include <cstdint>
#include <filesystem>
#include <span>
#include <stop_token>

#include "leat/base/result.h"

namespace leat {

struct Residency {
  std::uint64_t bytes = 0;           ///< Of all the files.
  std::uint64_t resident_bytes = 0;  ///< Of these, in whole pages in memory.
};

/// What the page cache holds of `files`, by mincore(2). Files that cannot be
/// opened are left out: they may have been temporary.
Residency residency_of(std::span<const std::filesystem::path> files);

/// Drops clean pages of the files (posix_fadvise(2), POSIX_FADV_DONTNEED).
void drop_from_page_cache(std::span<const std::filesystem::path> files);

/// Reads the files once. Blocks.
///
/// Errors:
///   kCancelled  `stop` fired
Result<void> read_into_page_cache(std::span<const std::filesystem::path> files,
                                  const std::stop_token& stop);

}  // namespace leat
