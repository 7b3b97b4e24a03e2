// Undoes the filters that HDF5 applies to a chunk before it stores it. (Deflate
// is not here: every language has it.)
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "leat/base/buffer.h"
#include "leat/base/result.h"

namespace leat {

/// Undoes LZF, the compression of h5py, which stands for `size_bytes` bytes.
/// Never makes more.
///
/// Errors: kCorrupt if it is damaged, or stands for more or less
Result<Buffer> undo_lzf(std::span<const std::byte> bytes,
                        std::uint64_t size_bytes);

/// Undoes the filter "shuffle", which stores the first bytes of all items, then
/// all second ones and so on. Bytes behind the last whole item stay where they
/// are.
///
/// REQUIRES: item_bytes > 0
Buffer undo_shuffle(std::span<const std::byte> bytes, std::size_t item_bytes);

/// Checks the four bytes that the filter "fletcher32" puts behind a chunk;
/// gives the chunk without them.
///
/// Errors: kCorrupt if they do not fit, or are not there
Result<std::span<const std::byte>> undo_fletcher32(
    std::span<const std::byte> bytes);

}  // namespace leat
