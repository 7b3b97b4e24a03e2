// Decides which documents share a row of a batch of sequences.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "leat/base/result.h"

namespace leat {

/// How documents get into rows.
enum class PackMethod : std::uint8_t {
  kBestFit,   ///< Into the open row with the least room that is enough.
  kFirstFit,  ///< Into the open row with enough room that began first.
  /// End to end, cut where a row is full: no padding but in the last row.
  kConcatThenSplit,
};

/// The name that users give: "best_fit", "first_fit" or "concat_then_split".
std::string_view to_string(PackMethod method);
/// Errors: kInvalidArgument: there is no such name
Result<PackMethod> parse_pack_method(std::string_view name);

/// The fate of a document that is longer than a row. kConcatThenSplit cuts
/// all documents, so it has kSplit alone.
enum class LongDocuments : std::uint8_t {
  kSplit,     ///< Whole rows of it, and the rest as a document of its own.
  kTruncate,  ///< Its first row alone; the rest is lost.
  kRefuse,    ///< An error, as in Grain.
};

/// By the name that users give: "split", "truncate" or "raise".
/// Errors: kInvalidArgument: there is no such name
Result<LongDocuments> parse_long_documents(std::string_view name);

struct PackOptions {
  std::uint32_t capacity = 0;  ///< Tokens of a row: 1 to 2^31 - 1.
  PackMethod method = PackMethod::kBestFit;
  /// Rows that are open at a time, at least 1. More waste less padding, and mix
  /// documents that are further apart. kConcatThenSplit ignores it.
  std::uint32_t bins = 64;
  std::uint32_t max_sequences = 0;  ///< Pieces of a row; 0: as many as fit.
  LongDocuments long_documents = LongDocuments::kSplit;
};

/// A run of a document's tokens, side by side in one row.
struct PackPiece {
  std::uint64_t begin = 0;   ///< Within the document.
  std::uint32_t sample = 0;  ///< The document's place in the window.
  std::uint32_t length = 0;  ///< In tokens, at least 1.
  friend bool operator==(const PackPiece&, const PackPiece&) = default;
};

/// Rows of pieces. Each row has at least one; no two pieces overlap.
struct PackedRows {
  std::vector<PackPiece> pieces;        ///< Row by row.
  std::vector<std::size_t> offsets{0};  ///< rows + 1: a row's first piece.

  std::size_t rows() const { return offsets.size() - 1; }
  std::span<const PackPiece> row(std::size_t i) const {
    return std::span(pieces).subspan(offsets[i], offsets[i + 1] - offsets[i]);
  }
};

/// Packs the documents of a window, given their lengths in tokens.
///
/// The plan depends on the arguments alone, so any rank can compute any window.
/// Rows come in the order in which they close: when they are full, when they
/// have `max_sequences`, or when a document fits nowhere and they, or a row of
/// that document alone, have the least room. At the end of the window the open
/// rows close as they are, and nothing is carried into the next window: about
/// `bins` rows of a window are filled less well, so a window should have many
/// more. Within a row, pieces stand in the order of the window. Empty documents
/// are in no row.
///
/// Threads: any. Takes O(n log bins), and about 40 bytes a piece.
///
/// Errors:
///   kInvalidArgument  an option is out of its range; a document is longer than
///                     a row, for kRefuse; more than 2^32 - 1 documents or
///                     pieces
Result<PackedRows> pack(std::span<const std::uint64_t> lengths,
                        const PackOptions& options);

}  // namespace leat
