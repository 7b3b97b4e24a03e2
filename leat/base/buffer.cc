#include "leat/base/buffer.h"

#include <sys/mman.h>

#include <new>

namespace leat {
namespace {

// From here on the system is asked itself. Below it a heap loses little, and
// fresh pages would cost more than the work on them.
constexpr std::size_t kMappedBytes = std::size_t{1} << 20;

}  // namespace

std::byte* Buffer::allocate(std::size_t size_bytes) {
  if (size_bytes == 0) return nullptr;
  if (size_bytes < kMappedBytes) {
    return static_cast<std::byte*>(
        ::operator new(size_bytes, std::align_val_t(kAlignment)));
  }
  void* pages = ::mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) throw std::bad_alloc();
  return static_cast<std::byte*>(pages);
}

void Buffer::free(std::byte* bytes, std::size_t size_bytes) {
  if (bytes == nullptr) return;
  if (size_bytes < kMappedBytes) {
    ::operator delete(bytes, std::align_val_t(kAlignment));
  } else {
    (void)::munmap(bytes, size_bytes);
  }
}

}  // namespace leat
