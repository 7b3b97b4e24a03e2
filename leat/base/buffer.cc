#include "leat/base/buffer.h"

#include <sys/mman.h>

#include <mutex>
#include <new>
#include <vector>

#include "leat/base/sanitized.h"

namespace leat {
namespace {

// From here on the system is asked itself. Below it a heap loses little, and
// fresh pages would cost more than the work on them.
constexpr std::size_t kMappedBytes = std::size_t{1} << 20;
constexpr std::size_t kMostKept = std::size_t{64} << 20;

// Sanitizers see more if nothing is reused.
#ifdef LEAT_IS_SANITIZED
constexpr bool kKeeps = false;
#else
constexpr bool kKeeps = true;
#endif

/// Mapped pages that were freed, the last one first.
///
/// Threads: any. A lock that is taken is not waited for: the system is asked
/// instead. So a child that was forked while it was held loses speed alone.
class KeptPages {
 public:
  /// Null: there are none of that size.
  std::byte* take(std::size_t mapped_bytes) {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock) return nullptr;
    for (auto kept = kept_.rbegin(); kept != kept_.rend(); ++kept) {
      if (kept->mapped_bytes != mapped_bytes) continue;
      std::byte* const bytes = kept->bytes;
      kept_bytes_ -= mapped_bytes;
      kept_.erase(std::next(kept).base());
      return bytes;
    }
    return nullptr;
  }

  /// Makes room by unmapping those that were kept the longest.
  void keep(std::byte* bytes, std::size_t mapped_bytes) {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock || mapped_bytes > kMostKept) {
      (void)::munmap(bytes, mapped_bytes);
      return;
    }
    while (kept_bytes_ + mapped_bytes > kMostKept) drop_oldest();
    kept_.push_back({bytes, mapped_bytes});
    kept_bytes_ += mapped_bytes;
  }

  void drop_all() {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock) return;
    while (!kept_.empty()) drop_oldest();
  }

 private:
  struct Kept {
    std::byte* bytes;
    std::size_t mapped_bytes;
  };

  void drop_oldest() {
    const Kept oldest = kept_.front();
    kept_.erase(kept_.begin());
    kept_bytes_ -= oldest.mapped_bytes;
    (void)::munmap(oldest.bytes, oldest.mapped_bytes);
  }

  std::mutex mutex_;
  std::vector<Kept> kept_;  // At most 64, the oldest first.
  std::size_t kept_bytes_ = 0;
};

KeptPages& kept_pages() {
  // Never destroyed: buffers may outlive all else.
  static KeptPages& kept = *new KeptPages;
  return kept;
}

/// In whole MiB, so that pieces of almost one length can take each other's
/// pages. Pages that are not touched take no memory.
std::size_t mapped_bytes_of(std::size_t size_bytes) {
  return (size_bytes + kMappedBytes - 1) / kMappedBytes * kMappedBytes;
}

}  // namespace

std::byte* Buffer::allocate(std::size_t size_bytes) {
  if (size_bytes == 0) return nullptr;
  if (size_bytes < kMappedBytes) {
    return static_cast<std::byte*>(
        ::operator new(size_bytes, std::align_val_t(kAlignment)));
  }
  const std::size_t mapped_bytes = mapped_bytes_of(size_bytes);
  if (std::byte* const kept = kept_pages().take(mapped_bytes)) return kept;
  void* pages = ::mmap(nullptr, mapped_bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) throw std::bad_alloc();
  return static_cast<std::byte*>(pages);
}

void Buffer::free(std::byte* bytes, std::size_t size_bytes) {
  if (bytes == nullptr) return;
  if (size_bytes < kMappedBytes) {
    ::operator delete(bytes, std::align_val_t(kAlignment));
  } else if (kKeeps) {
    kept_pages().keep(bytes, mapped_bytes_of(size_bytes));
  } else {
    (void)::munmap(bytes, mapped_bytes_of(size_bytes));
  }
}

void Buffer::give_back_kept() { kept_pages().drop_all(); }

}  // namespace leat
