#include "leat/base/hash.h"

#include <fmt/format.h>
#include <xxhash.h>

#if defined(__x86_64__) || defined(__aarch64__)
#include <isa-l/crc.h>
#endif

#include <array>
#include <bit>
#include <cstring>

#include "leat/base/check.h"

namespace leat {

std::string Hash128::hex() const {
  return fmt::format("{:016x}{:016x}", high, low);
}

Hash128 xxh3_128(std::span<const std::byte> bytes, std::uint64_t seed) {
  const XXH128_hash_t hash =
      XXH3_128bits_withSeed(bytes.data(), bytes.size(), seed);
  return {.high = hash.high64, .low = hash.low64};
}

std::uint64_t xxh3_64(std::span<const std::byte> bytes, std::uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

Hasher128::Hasher128(std::uint64_t seed) : state_(XXH3_createState()) {
  LEAT_CHECK(state_ != nullptr);
  XXH3_128bits_reset_withSeed(static_cast<XXH3_state_t*>(state_), seed);
}

Hasher128::~Hasher128() { XXH3_freeState(static_cast<XXH3_state_t*>(state_)); }

void Hasher128::update(std::span<const std::byte> bytes) {
  XXH3_128bits_update(static_cast<XXH3_state_t*>(state_), bytes.data(),
                      bytes.size());
}

void Hasher128::update(std::uint64_t value) {
  std::array<std::byte, 8> bytes;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::byte>(value >> (8 * i));
  }
  update(bytes);
}

Hash128 Hasher128::digest() const {
  const XXH128_hash_t hash =
      XXH3_128bits_digest(static_cast<const XXH3_state_t*>(state_));
  return {.high = hash.high64, .low = hash.low64};
}

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t crc) {
  // ISA-L takes a signed length and a buffer that it does not change.
  constexpr std::size_t kMost = 1U << 30;
  crc = ~crc;
  while (!bytes.empty()) {
    const std::size_t piece = bytes.size() < kMost ? bytes.size() : kMost;
    auto* data = const_cast<std::byte*>(bytes.data());
    crc = crc32_iscsi(reinterpret_cast<unsigned char*>(data),
                      static_cast<int>(piece), crc);
    bytes = bytes.subspan(piece);
  }
  return ~crc;
}

}  // namespace leat
