// One 512-byte header block of a tar archive.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "leat/base/result.h"

namespace leat {

inline constexpr std::uint64_t kTarBlockBytes = 512;

/// The fields of a header block, not yet interpreted.
struct TarHeader {
  char type = '0';
  std::string name;  ///< The ustar prefix included.
  std::uint64_t size_bytes = 0;
};

/// Reads a header block: ustar, GNU or the older format without a magic.
///
/// REQUIRES: block.size() == kTarBlockBytes.
/// Errors:
///   kCorrupt  the checksum does not match, or the size is no number
Result<TarHeader> parse_tar_header(std::span<const std::byte> block);

/// True for a block of zeros, which ends an archive.
bool is_zero_block(std::span<const std::byte> block);

/// The settings of a pax header that matter here.
struct PaxRecords {
  std::optional<std::string> path;
  std::optional<std::uint64_t> size_bytes;
  bool is_sparse = false;
};

/// Reads the body of a pax header and lets it override `records`.
///
/// Errors: kCorrupt, where a record is not "length key=value\n".
Result<void> parse_pax(std::string_view body, PaxRecords& records);

/// A name says where a file lies below the archive's folder, and no more.
///
/// Errors: kCorrupt if it is absolute, has a part "..", or a NUL.
Result<void> check_member_name(std::string_view name);

}  // namespace leat
