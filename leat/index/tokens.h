// The catalogue of token windows: files of numbers, cut into runs of equal
// length.
#pragma once
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "leat/base/buffer.h"
#include "leat/base/result.h"
#include "leat/codec/npy/npy_header.h"
#include "leat/index/build.h"
#include "leat/index/selection.h"
#include "leat/store/store.h"

namespace leat {

/// The type of the numbers, and how many make a sample.
struct TokenWindows {
  NpyKind kind = NpyKind::kUnsigned;
  std::uint32_t item_bytes = 2;
  std::uint64_t seq_len = 0;  ///< Tokens a window.
  std::uint64_t stride = 0;   ///< Tokens from a window to the next; never 0.
  /// The token that ends a document: windows then begin and end with
  /// documents, and a document's last one may be shorter. Tokens that are
  /// floats have none.
  std::optional<std::uint64_t> eos = std::nullopt;
};

/// The selection of token files: where it names no ends of names, `.bin` and
/// `.npy`.
Selection selection_of_tokens(Selection selection);

/// Makes the catalogue of the windows of the files below `prefix` that
/// selection_of_tokens() of `options.selection` takes, in byte order of their
/// keys. A sample is `seq_len` tokens, the field `tokens`; a window begins each
/// `stride` tokens, none reaches from file to file, and the rest at the end of
/// a file is left out. Blocks.
///
/// With `eos` all files are read once, to find where documents end; then each
/// token is in a window, that of the end in its document's last.
///
/// A `.bin` is nothing but tokens, little-endian; the header of a `.npy` is
/// read, and has to agree.
///
/// Errors:
///   kInvalidArgument  a `.bin` of no whole number of tokens, a `.npy` of
///                     another type or of more than one dimension
///   kNotFound         no such file, or no window in any
///   kCorrupt          a damaged `.npy`; or any of Store's
Result<BuiltCatalogue> build_token_windows(Store& store,
                                           std::string_view prefix,
                                           const TokenWindows& windows,
                                           const IndexOptions& options,
                                           const std::stop_token& stop);

/// "uint16", "int32", …: the kind and size of NumPy's plain numbers.
///
/// `stride` of 0 is seq_len: windows that do not overlap.
///
/// Errors: kInvalidArgument: no such type (names those there are), a seq_len of
/// 0, a stride above seq_len, which would leave tokens out, or an eos that is
/// no number of that type
Result<TokenWindows> token_windows(std::string_view dtype,
                                   std::uint64_t seq_len,
                                   std::uint64_t stride = 0,
                                   std::optional<std::uint64_t> eos = {});

}  // namespace leat
