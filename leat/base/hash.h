// XXH3 and CRC32C: hashes of bytes that are not secrets.
#pragma once
#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace leat {

/// A 128-bit number that adds modulo 2^128.
struct Hash128 {
  std::uint64_t high = 0;
  std::uint64_t low = 0;

  Hash128& operator+=(Hash128 other) {
    low += other.low;
    high += other.high + (low < other.low ? 1 : 0);
    return *this;
  }
  friend Hash128 operator+(Hash128 a, Hash128 b) { return a += b; }
  friend auto operator<=>(Hash128, Hash128) = default;

  /// 32 lower-case hexadecimal digits.
  std::string hex() const;
};

/// XXH3-128 of `bytes`.
Hash128 xxh3_128(std::span<const std::byte> bytes, std::uint64_t seed = 0);
/// XXH3-64 of `bytes`.
std::uint64_t xxh3_64(std::span<const std::byte> bytes, std::uint64_t seed = 0);

/// XXH3-128 over pieces that come one after another.
class Hasher128 {
 public:
  explicit Hasher128(std::uint64_t seed = 0);
  ~Hasher128();
  Hasher128(const Hasher128&) = delete;
  Hasher128& operator=(const Hasher128&) = delete;

  void update(std::span<const std::byte> bytes);
  /// Adds the eight bytes of `value`, little-endian.
  void update(std::uint64_t value);
  Hash128 digest() const;

 private:
  void* state_;
};

/// CRC32C (Castagnoli, RFC 3720 appendix B.4), continued from `crc`.
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t crc = 0);

/// The finaliser of SplitMix64 (Steele, Lea, Flood 2014): a bijection of 64
/// bits that looks random.
constexpr std::uint64_t mix64(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

}  // namespace leat
