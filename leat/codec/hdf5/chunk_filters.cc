#include "leat/codec/hdf5/chunk_filters.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "leat/base/check.h"
#include "leat/base/errors.h"

namespace leat {
namespace {

constexpr std::size_t kChecksumBytes = 4;
/// The sums of this many words fit 32 bits.
constexpr std::size_t kWordsAtOnce = 360;

/// Copies bytes that were made before, one by one: where the copy overlaps what
/// it is made of, that repeats.
void repeat(std::byte* to, std::size_t back, std::size_t count) {
  for (const std::byte* from = to - back; count != 0; --count) *to++ = *from++;
}

Error corrupt_lzf(std::string_view why) { return corrupt("lzf: {}", why); }

std::uint32_t folded(std::uint32_t sum) { return (sum & 0xffff) + (sum >> 16); }

/// Fletcher's checksum over words of two bytes, the high one first.
std::uint32_t fletcher32(std::span<const std::byte> bytes) {
  const auto at = [&](std::size_t i) {
    return std::to_integer<std::uint32_t>(bytes[i]);
  };
  std::uint32_t first = 0;
  std::uint32_t second = 0;
  const std::size_t words = bytes.size() / 2;
  for (std::size_t word = 0; word < words;) {
    const std::size_t end = std::min(words, word + kWordsAtOnce);
    for (; word < end; ++word) {
      first += at(2 * word) << 8 | at(2 * word + 1);
      second += first;
    }
    first = folded(first);
    second = folded(second);
  }
  if (bytes.size() % 2 != 0) {
    first += at(bytes.size() - 1) << 8;
    second += first;
    first = folded(first);
    second = folded(second);
  }
  return folded(second) << 16 | folded(first);
}

/// As HDF5 1.6.2 wrote it on little-endian machines.
std::uint32_t with_swapped_words(std::uint32_t sum) {
  return (sum & 0x00ff00ff) << 8 | (sum & 0xff00ff00) >> 8;
}

}  // namespace

Result<Buffer> undo_lzf(std::span<const std::byte> bytes,
                        std::uint64_t size_bytes) {
  // A byte pair of three stands for at most 264 bytes.
  if (size_bytes / 264 > bytes.size()) return corrupt_lzf("it is too short");
  Buffer made(size_bytes);
  std::size_t in = 0;
  std::size_t out = 0;
  while (in < bytes.size()) {
    const auto control = std::to_integer<std::size_t>(bytes[in++]);
    if (control < 32) {
      const std::size_t count = control + 1;
      if (count > bytes.size() - in) return corrupt_lzf("it is cut short");
      if (count > size_bytes - out) return corrupt_lzf("it stands for more");
      std::memcpy(made.data() + out, bytes.data() + in, count);
      in += count;
      out += count;
      continue;
    }
    std::size_t count = (control >> 5) + 2;
    if (bytes.size() - in < (count == 9 ? 2 : 1)) {
      return corrupt_lzf("it is cut short");
    }
    if (count == 9) count += std::to_integer<std::size_t>(bytes[in++]);
    const std::size_t back =
        ((control & 31) << 8) + std::to_integer<std::size_t>(bytes[in++]) + 1;
    if (back > out) return corrupt_lzf("it refers to bytes before its first");
    if (count > size_bytes - out) return corrupt_lzf("it stands for more");
    repeat(made.data() + out, back, count);
    out += count;
  }
  if (out != size_bytes) {
    return corrupt_lzf(
        fmt::format("it stands for {} bytes of {}", out, size_bytes));
  }
  return made;
}

Buffer undo_shuffle(std::span<const std::byte> bytes, std::size_t item_bytes) {
  LEAT_CHECK(item_bytes > 0);
  Buffer made(bytes.size());
  const std::size_t items = bytes.size() / item_bytes;
  for (std::size_t i = 0; i < item_bytes; ++i) {
    const std::byte* const from = bytes.data() + i * items;
    std::byte* to = made.data() + i;
    for (std::size_t item = 0; item < items; ++item, to += item_bytes) {
      *to = from[item];
    }
  }
  std::ranges::copy(bytes.subspan(items * item_bytes),
                    made.data() + items * item_bytes);
  return made;
}

Result<std::span<const std::byte>> undo_fletcher32(
    std::span<const std::byte> bytes) {
  if (bytes.size() < kChecksumBytes) {
    return corrupt("fletcher32: no checksum is there");
  }
  const auto chunk = bytes.first(bytes.size() - kChecksumBytes);
  std::uint32_t stored = 0;
  for (std::size_t i = 0; i < kChecksumBytes; ++i) {
    stored |= std::to_integer<std::uint32_t>(bytes[chunk.size() + i]) << 8 * i;
  }
  const std::uint32_t sum = fletcher32(chunk);
  if (stored != sum && stored != with_swapped_words(sum)) {
    return corrupt("fletcher32: the checksum is {:08x}, and {:08x} is stored",
                   sum, stored);
  }
  return chunk;
}

}  // namespace leat
