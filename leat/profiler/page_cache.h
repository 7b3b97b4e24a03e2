// The kernel's page cache: how much of some files it holds, and changing that.
#pragma once
#include <cstdint>
#include <filesystem>
#include <span>
#include <stop_token>
#include <utility>
#include <vector>

#include "leat/base/result.h"

namespace leat {

struct Residency {
  std::uint64_t bytes = 0;           ///< Bytes of all the files.
  std::uint64_t resident_bytes = 0;  ///< The part in whole pages in memory.
};

/// The part of `files` that the page cache holds, by mincore(2). Files that
/// cannot be opened are left out: they may have been temporary.
Residency residency_of(std::span<const std::filesystem::path> files);

/// Drops clean pages of the files (posix_fadvise(2), POSIX_FADV_DONTNEED).
void drop_from_page_cache(std::span<const std::filesystem::path> files);

/// Reads the files once. Blocks.
///
/// Errors:
///   kCancelled  `stop` fired
Result<void> read_into_page_cache(std::span<const std::filesystem::path> files,
                                  const std::stop_token& stop);

/// Keeps what the page cache holds of files there, for as long as this lives
/// and as far as the kernel allows (mlock(2)): a machine that is short of
/// memory, or gives back what it thinks is idle, takes it from files first.
///
/// Threads: one.
class KeptPages {
 public:
  /// Keeps pages of the first files, at most `most_bytes` in all.
  KeptPages(std::span<const std::filesystem::path> files,
            std::uint64_t most_bytes);
  ~KeptPages();
  KeptPages(const KeptPages&) = delete;
  KeptPages& operator=(const KeptPages&) = delete;

  /// The bytes that are kept; fewer than asked for if the kernel allows no
  /// more.
  std::uint64_t bytes() const { return bytes_; }

 private:
  std::vector<std::pair<void*, std::size_t>> mapped_;
  std::uint64_t bytes_ = 0;
};

}  // namespace leat
