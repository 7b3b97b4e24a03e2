// The checksums by which services prove the bytes of objects.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace leat {

/// CRC-64/NVME (NVM Express NVM Command Set 1.0, 5.2.1.3.4), continued from
/// `crc`: what S3 keeps of each object unless told otherwise.
std::uint64_t crc64_nvme(std::span<const std::byte> bytes,
                         std::uint64_t crc = 0);

/// The CRC-32 of gzip and zlib (RFC 1952), continued from `crc`.
std::uint32_t crc32_gzip(std::span<const std::byte> bytes,
                         std::uint32_t crc = 0);

}  // namespace leat
