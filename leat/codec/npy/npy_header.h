// The header of a .npy file: what the array behind it is.
//
//     offset  bytes  what
//     0       6      "\x93NUMPY"
//     6       2      version: 1.0, 2.0 or 3.0
//     8       2, 4   length of the rest of the header, little-endian; 2 bytes
//     in
//                    version 1.0
//     …              a Python dict of 'descr', 'fortran_order' and 'shape'
//     …              the items of the array
//
// The dict is read by a grammar of its own, never evaluated:
//
//     {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "leat/base/result.h"

namespace leat {

/// The type of an array's items, as NumPy's letters.
enum class NpyKind : char {
  kBool = 'b',
  kSigned = 'i',
  kUnsigned = 'u',
  kFloat = 'f',
  kComplex = 'c',
};

struct NpyHeader {
  NpyKind kind = NpyKind::kFloat;
  std::uint32_t item_bytes = 0;  ///< 1 to 16, as fits the kind.
  std::vector<std::int64_t> shape;
  std::size_t data_offset = 0;  ///< The start of the items, in C order.
};

/// Reads the header and checks that just the items follow in a file of
/// `file_bytes`, of which `head` is the beginning: the whole, or at least the
/// header. Takes only C order, little-endian, and plain numbers.
///
/// Errors:
///   kCorrupt          no .npy, cut short, or not of the size that it claims
///   kInvalidArgument  a .npy that is sound and not taken: Fortran order, big
///                     endian, objects, structures, texts, dates; the message
///                     says how to write it instead
Result<NpyHeader> read_npy_header(std::span<const std::byte> head,
                                  std::uint64_t file_bytes);

/// The same of a whole file.
inline Result<NpyHeader> read_npy_header(std::span<const std::byte> file) {
  return read_npy_header(file, file.size());
}

/// Checks that just the items follow in the `file_bytes` of an array, of
/// whatever format: `what` names it in messages.
///
/// Errors: kCorrupt
/// REQUIRES: no side is negative; the head lies within the file.
Result<void> check_items_follow(const NpyHeader& header,
                                std::uint64_t file_bytes,
                                std::string_view what);

}  // namespace leat
