// The format of a decoded record: the type, the shape and the bytes of an
// array.
//
//     4  "LDR1"
//     1  the type, as DType counts
//     1  how many dimensions, at most 8
//     2  0
//     8  each dimension, little-endian
//     .  the array in C order, to the end
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "leat/pipeline/program/tensor.h"

namespace leat {

/// An array that lies in a record.
struct RecordArray {
  TensorSpec spec;
  std::span<const std::byte> bytes;
};

/// The length of the record for an array. REQUIRES: at most 8 dimensions.
std::uint64_t record_bytes_of(const TensorSpec& spec);

/// Writes what precedes the array, and returns where to put the array.
/// REQUIRES: record.size() == record_bytes_of(spec).
std::span<std::byte> begin_record(const TensorSpec& spec,
                                  std::span<std::byte> record);

/// nullopt if it is not such a record, or not as long as its shape says: it may
/// come from a disk.
std::optional<RecordArray> read_record(std::span<const std::byte> record);

}  // namespace leat
