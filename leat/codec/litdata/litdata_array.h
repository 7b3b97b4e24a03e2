// The head of an array in a chunk of LitData: what the items behind it are.
//
//     bytes   "tensor"                       "numpy"
//     4       the type, by PyTorch's names   the type, by NumPy's
//     4       the number of dimensions       the same
//     4 each  the sides                      the same
//     …       the items, in C order and little-endian
//
// The head of a tensor is big-endian and that of a NumPy array little-endian.
// Their second words tell them apart, since there are few dimensions; an array
// without dimensions is a tensor.
#pragma once
#include <cstddef>
#include <span>

#include "leat/base/result.h"
#include "leat/codec/npy/npy_header.h"

namespace leat {

/// Reads the head of an array and checks that just its items follow in
/// `encoded`.
///
/// Errors:
///   kCorrupt  cut short, of a type that is not of numbers, or not of the size
///             that it claims
Result<NpyHeader> read_litdata_array(std::span<const std::byte> encoded);

}  // namespace leat
