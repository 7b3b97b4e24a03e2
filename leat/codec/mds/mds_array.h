// The head of an array in a shard of MosaicML Streaming (MDS): what the items
// behind it are.
//
//     bytes        what
//     1            the type of the items; only if the column does not say it
//     1            dimensions << 2 | the bytes of a side: 0 to 3 are 1, 2, 4, 8
//     …            the sides, unsigned and little-endian
//     …            the items of the array, in C order and little-endian
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "leat/base/result.h"
#include "leat/codec/npy/npy_header.h"

namespace leat {

/// The type of an array's items.
struct MdsItems {
  NpyKind kind = NpyKind::kFloat;
  std::uint32_t item_bytes = 0;

  friend bool operator==(const MdsItems&, const MdsItems&) = default;
};

/// The type that MDS gives this name, "uint8" to "float64"; nullopt if there is
/// none.
std::optional<MdsItems> mds_items_named(std::string_view name);

/// Reads the head of an array and checks that just its items follow in
/// `encoded`. `items`: what the column says of all its arrays; nullopt: each
/// says it.
///
/// Errors:
///   kCorrupt  cut short, of an unknown type, or not of the size that it claims
Result<NpyHeader> read_mds_array(std::span<const std::byte> encoded,
                                 const std::optional<MdsItems>& items);

}  // namespace leat
