// Bytes that one owner holds.
#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

namespace leat {

/// A block of bytes, aligned to 64 and not initialised. Freeing a large block
/// returns its memory to the system, but for 64 MiB, which the next large
/// blocks reuse: fresh pages would cost more than reading into them. A heap
/// would keep all of that memory and grow past any budget.
///
/// Moves, does not copy. `std::shared_ptr<const Buffer>` (`BufferRef`) is how
/// immutable bytes are shared.
class Buffer {
 public:
  static constexpr std::size_t kAlignment = 64;

  Buffer() = default;
  /// Throws std::bad_alloc as `new` does.
  explicit Buffer(std::size_t size_bytes)
      : bytes_(allocate(size_bytes)), size_bytes_(size_bytes) {}
  ~Buffer() { free(bytes_, size_bytes_); }
  Buffer(Buffer&& other) noexcept
      : bytes_(std::exchange(other.bytes_, nullptr)),
        size_bytes_(std::exchange(other.size_bytes_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    Buffer taken(std::move(other));
    std::swap(bytes_, taken.bytes_);
    std::swap(size_bytes_, taken.size_bytes_);
    return *this;
  }

  std::byte* data() { return bytes_; }
  const std::byte* data() const { return bytes_; }
  std::size_t size() const { return size_bytes_; }
  std::span<std::byte> span() { return {data(), size_bytes_}; }
  std::span<const std::byte> span() const { return {data(), size_bytes_}; }

  /// Returns what is kept for reuse to the system, too.
  static void give_back_kept();

 private:
  static std::byte* allocate(std::size_t size_bytes);
  static void free(std::byte* bytes, std::size_t size_bytes);

  std::byte* bytes_ = nullptr;
  std::size_t size_bytes_ = 0;
};

using BufferRef = std::shared_ptr<const Buffer>;

/// The bytes of a string, and back. They share the memory.
inline std::span<const std::byte> as_bytes(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}
inline std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace leat
