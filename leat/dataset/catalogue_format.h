// The catalogue's bytes. docs/reference/catalogue.md explains them; only the
// reader and the writer include this.
#pragma once
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "leat/dataset/catalogue.h"

namespace leat::catalogue_format {

static_assert(std::endian::native == std::endian::little,
              "the file is little-endian and read in place");

inline constexpr std::array<char, 8> kMagic = {'\x89', 'L', 'E', 'A',
                                               'T',    'C', 'A', 'T'};
/// Files of version 1, which are read too, do not say where shards are cut.
inline constexpr std::uint32_t kVersion = 2;
inline constexpr std::uint32_t kVersionWithoutPieces = 1;
inline constexpr std::uint64_t kMostSamples = std::uint64_t{1} << 40;
/// ByteRange::kMissing is not an object.
inline constexpr std::uint64_t kMostObjects = ByteRange::kMissing;
inline constexpr std::uint64_t kMostRange = std::uint64_t{1} << 48;
inline constexpr std::size_t kRangeBytes = 16;
/// A value whose CRC32C is this number has none.
inline constexpr std::uint32_t kNoChecksum = 0;

/// The place of the samples' keys.
enum class SampleKeys : std::uint8_t {
  kOfObjects,  ///< Sample i has the name of object i.
  kOwn,        ///< In their own sections.
};

/// The first bytes of the file.
struct Header {
  std::array<char, 8> magic;
  std::uint32_t version;
  std::uint32_t sections;
  std::uint64_t file_bytes;
  std::uint64_t samples;
  std::uint64_t objects;
  std::uint64_t digest_high;
  std::uint64_t digest_low;
  std::uint8_t layout;
  std::uint8_t etag_kind;
  std::uint8_t sample_keys;
  std::uint8_t has_checksums;  ///< 0 or 1.
  std::uint32_t crc;  ///< CRC32C of all before it, then of the section table.
};
static_assert(sizeof(Header) == 64);
inline constexpr std::size_t kHeaderCrcOffset = offsetof(Header, crc);

/// The content of a section. Sections follow one another in this order, those
/// of fields field by field, without a gap.
enum class SectionKind : std::uint32_t {
  kFields = 1,
  kClasses,
  kObjectSizes,
  kObjectKeyEnds,
  kObjectKeyText,
  kEtagEnds,  ///< These two are absent if etag_kind is kNone.
  kEtagText,
  kSampleKeyEnds,  ///< These two are absent if sample_keys is kOfObjects.
  kSampleKeyText,
  kRanges,
  kInt64,
  kFloat64,
  kStringEnds,
  kStringText,
  kChecksums,  ///< After each kRanges, if has_checksums.
  kPieces,     ///< Last, if the layout is kShards.
};

constexpr std::string_view to_string(SectionKind kind) {
  constexpr std::array<std::string_view, 17> kNames = {"?",
                                                       "fields",
                                                       "classes",
                                                       "object sizes",
                                                       "key ends",
                                                       "key text",
                                                       "etag ends",
                                                       "etag text",
                                                       "sample key ends",
                                                       "sample key text",
                                                       "ranges",
                                                       "int64",
                                                       "float64",
                                                       "string ends",
                                                       "string text",
                                                       "checksums",
                                                       "pieces"};
  const auto index = static_cast<std::size_t>(kind);
  return index < kNames.size() ? kNames[index] : kNames[0];
}

/// A row of the table that follows the header.
struct SectionEntry {
  std::uint32_t kind;
  std::uint32_t field;  ///< The field; 0 if it belongs to none.
  std::uint64_t offset;
  std::uint64_t length;
  std::uint32_t width;  ///< Bytes a value; 0 for text.
  std::uint32_t crc;    ///< CRC32C of its bytes.
};
static_assert(sizeof(SectionEntry) == 32);

/// Reads a value at any address, aligned or not.
template <class T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

/// A ByteRange in 16 bytes: object 32 bits, offset 48, length 48.
struct PackedRange {
  std::uint64_t low;   ///< The object, and the low half of the offset above it.
  std::uint64_t high;  ///< The rest of the offset, and the length above it.
};
static_assert(sizeof(PackedRange) == kRangeBytes);

constexpr PackedRange pack(const ByteRange& range) {
  return {.low = range.object.value | range.offset << 32,
          .high = range.offset >> 32 | range.length_bytes << 16};
}

constexpr ByteRange unpack(const PackedRange& packed) {
  return {.object = {static_cast<std::uint32_t>(packed.low)},
          .offset = packed.low >> 32 | (packed.high & 0xffff) << 32,
          .length_bytes = packed.high >> 16};
}

}  // namespace leat::catalogue_format
