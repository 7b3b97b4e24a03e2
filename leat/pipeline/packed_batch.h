// The arrays of a batch whose rows hold several documents.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "leat/base/result.h"
#include "leat/pipeline/program/tensor.h"
#include "leat/plan/packing.h"

namespace leat {

/// Tokens of documents, end to end, as a ragged field of a batch has them.
struct DocumentTokens {
  DType dtype = DType::kInt64;        ///< kUint8, 16 or 32, or kInt32 or 64.
  std::span<const std::byte> values;  ///< Aligned for `dtype`.
  std::span<const std::int64_t> offsets;  ///< documents + 1.
};

/// The memory of the arrays, each of shape (rows, capacity).
struct PackedArrays {
  std::span<std::byte> tokens;          ///< The documents' type.
  std::span<std::int32_t> segment_ids;  ///< From 1 in each row; 0 in padding.
  std::span<std::int32_t> positions;    ///< From 0 in each piece.
  /// The next token of the same document, also where a row ends within it.
  /// kNoLabel at the document's last token, and in padding.
  std::span<std::int64_t> labels;
};

/// The label that losses ignore: PyTorch's default.
inline constexpr std::int64_t kNoLabel = -100;

/// The pieces of a batch as FlashAttention's functions for sequences of unequal
/// length take them, over the rows end to end. Padding at the end of a row
/// counts as a sequence: so every token is in one.
struct SequenceBounds {
  std::vector<std::int32_t> cu_seqlens{0};  ///< sequences + 1.
  std::int32_t max_seqlen = 0;
};

/// Fills the arrays with the rows, in one pass. Padding is `pad_token`.
///
/// Threads: any, for different arrays.
/// REQUIRES: the arrays have rows * capacity entries.
/// Errors:
///   kInvalidArgument  `pad_token` is outside the type, or the type is none of
///                     tokens; offsets that fall or leave the values; a piece
///                     outside its document; a row longer than `capacity`;
///                     2^31 tokens or more
Result<SequenceBounds> fill_packed(const DocumentTokens& documents,
                                   const PackedRows& rows,
                                   std::uint32_t capacity,
                                   std::int64_t pad_token,
                                   const PackedArrays& into);

}  // namespace leat
