// CRC-64/NVME in two ways. Tables take eight bytes a step, everywhere. On x86
// with carry-less multiplication, blocks of 64 bytes are folded: the remainder
// of a polynomial does not change if a term far ahead is replaced by its
// remainder (Gopal et al., "Fast CRC Computation for Generic Polynomials Using
// PCLMULQDQ Instruction", Intel, 2009). The rest goes through the tables.

#include "leat/base/object_checksums.h"

#include <isa-l/crc.h>

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace leat {
namespace {

// The first bit of a byte is its lowest, so polynomials read backwards.
constexpr std::uint64_t kPolynomial = 0x9a6c9329ac4bc9b5;

constexpr std::uint64_t times_x(std::uint64_t p) {
  return p >> 1 ^ ((p & 1) != 0 ? kPolynomial : 0);
}

using Tables = std::array<std::array<std::uint64_t, 256>, 8>;

constexpr Tables make_tables() {
  Tables tables{};
  for (std::uint64_t byte = 0; byte < 256; ++byte) {
    std::uint64_t p = byte;
    for (int bit = 0; bit < 8; ++bit) p = times_x(p);
    tables[0][byte] = p;
  }
  for (std::size_t i = 1; i < tables.size(); ++i) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint64_t before = tables[i - 1][byte];
      tables[i][byte] = before >> 8 ^ tables[0][before & 0xff];
    }
  }
  return tables;
}

constexpr Tables kTables = make_tables();

/// The bare remainder: without the inversions before and after.
std::uint64_t by_tables(std::span<const std::byte> bytes, std::uint64_t crc) {
  for (; bytes.size() >= 8; bytes = bytes.subspan(8)) {
    std::uint64_t word;
    std::memcpy(&word, bytes.data(), sizeof word);
    crc ^= word;
    std::uint64_t next = 0;
    for (std::size_t i = 0; i < 8; ++i) {
      next ^= kTables[7 - i][crc >> (8 * i) & 0xff];
    }
    crc = next;
  }
  for (const std::byte byte : bytes) {
    crc =
        crc >> 8 ^ kTables[0][(crc ^ static_cast<std::uint64_t>(byte)) & 0xff];
  }
  return crc;
}

#if defined(__x86_64__)

/// x^exponent, reduced.
constexpr std::uint64_t power_of_x(unsigned exponent) {
  std::uint64_t p = std::uint64_t{1} << 63;
  for (unsigned i = 0; i < exponent; ++i) p = times_x(p);
  return p;
}

/// Factors that bring 16 bytes forward by a number of bits. Their first
/// eight bytes are the higher powers; a product of two words read backwards
/// is one bit short.
struct Forward {
  std::uint64_t first;
  std::uint64_t last;
};
constexpr Forward forward_by(unsigned bits) {
  return {.first = power_of_x(bits + 63), .last = power_of_x(bits - 1)};
}
constexpr Forward kBy16Bytes = forward_by(128);
constexpr Forward kBy64Bytes = forward_by(512);

#define LEAT_CLMUL __attribute__((target("pclmul,sse4.1")))

LEAT_CLMUL __m128i load(const std::byte* at) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
}

LEAT_CLMUL __m128i vector_of(const Forward& by) {
  return _mm_set_epi64x(static_cast<long long>(by.last),
                        static_cast<long long>(by.first));
}

LEAT_CLMUL __m128i fold(__m128i block, __m128i by, __m128i next) {
  const __m128i first = _mm_clmulepi64_si128(block, by, 0x00);
  const __m128i last = _mm_clmulepi64_si128(block, by, 0x11);
  return _mm_xor_si128(_mm_xor_si128(first, last), next);
}

constexpr std::size_t kLanes = 4;
constexpr std::size_t kBlock = 16 * kLanes;

/// REQUIRES: two blocks or more.
LEAT_CLMUL std::uint64_t by_folding(std::span<const std::byte> bytes,
                                    std::uint64_t crc) {
  const std::byte* at = bytes.data();
  // No std::array: the type's alignment is an attribute, which is lost there.
  __m128i lanes[kLanes] = {load(at), load(at + 16), load(at + 32),
                           load(at + 48)};
  lanes[0] =
      _mm_xor_si128(lanes[0], _mm_cvtsi64_si128(static_cast<long long>(crc)));
  const __m128i by_64 = vector_of(kBy64Bytes);
  std::size_t left = bytes.size() - kBlock;
  for (at += kBlock; left >= kBlock; left -= kBlock, at += kBlock) {
    for (std::size_t i = 0; i < kLanes; ++i) {
      lanes[i] = fold(lanes[i], by_64, load(at + 16 * i));
    }
  }
  const __m128i by_16 = vector_of(kBy16Bytes);
  __m128i all = lanes[0];
  for (std::size_t i = 1; i < kLanes; ++i) {
    all = fold(all, by_16, lanes[i]);
  }
  std::array<std::byte, 16> folded;
  _mm_storeu_si128(reinterpret_cast<__m128i*>(folded.data()), all);
  return by_tables(std::span(at, left), by_tables(folded, 0));
}

const bool can_fold =
    __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");

#endif

}  // namespace

std::uint64_t crc64_nvme(std::span<const std::byte> bytes, std::uint64_t crc) {
#if defined(__x86_64__)
  if (can_fold && bytes.size() >= 2 * kBlock) {
    return ~by_folding(bytes, ~crc);
  }
#endif
  return ~by_tables(bytes, ~crc);
}

std::uint32_t crc32_gzip(std::span<const std::byte> bytes, std::uint32_t crc) {
  return crc32_gzip_refl(
      crc, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
}

}  // namespace leat
