#include "leat/pipeline/packed_batch.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "leat/base/errors.h"

namespace leat {
namespace {

Result<void> check(const DocumentTokens& documents) {
  const auto tokens = static_cast<std::int64_t>(documents.values.size() /
                                                size_bytes_of(documents.dtype));
  if (documents.offsets.empty()) {
    return invalid(
        "no offsets; documents have one more than there are of them");
  }
  if (documents.offsets.front() < 0 || documents.offsets.back() > tokens ||
      !std::ranges::is_sorted(documents.offsets)) {
    return invalid(
        "offsets of documents fall, or leave the {} tokens; they rise from 0",
        tokens);
  }
  return {};
}

Result<void> check(const DocumentTokens& documents, const PackedRows& rows,
                   std::size_t row, std::uint32_t capacity) {
  std::uint64_t length = 0;
  for (const PackPiece& piece : rows.row(row)) {
    if (piece.sample >= documents.offsets.size() - 1) {
      return invalid("row {} has a piece of document {}, and there are {}", row,
                     piece.sample, documents.offsets.size() - 1);
    }
    const auto tokens = static_cast<std::uint64_t>(
        documents.offsets[piece.sample + 1] - documents.offsets[piece.sample]);
    if (piece.begin > tokens || piece.length > tokens - piece.begin) {
      return invalid(
          "row {} has tokens {} to {} of document {}, which has {}; plan rows "
          "with the lengths that documents really have",
          row, piece.begin, piece.begin + piece.length, piece.sample, tokens);
    }
    length += piece.length;
  }
  if (length > capacity) {
    return invalid("row {} has {} tokens, and its capacity is {}", row, length,
                   capacity);
  }
  return {};
}

template <class Token>
class Filler {
 public:
  Filler(const DocumentTokens& documents, Token pad, const PackedArrays& into)
      : values_(reinterpret_cast<const Token*>(documents.values.data())),
        offsets_(documents.offsets),
        pad_(pad),
        tokens_(reinterpret_cast<Token*>(into.tokens.data())),
        into_(into) {}

  void add(const PackPiece& piece, std::int32_t segment) {
    const Token* const document = values_ + offsets_[piece.sample];
    const auto length_of_document = static_cast<std::uint64_t>(
        offsets_[piece.sample + 1] - offsets_[piece.sample]);
    const Token* const from = document + piece.begin;
    const std::size_t length = piece.length;
    std::copy_n(from, length, tokens_ + at_);
    std::ranges::fill(into_.segment_ids.subspan(at_, length), segment);
    const auto positions = into_.positions.subspan(at_, length);
    std::iota(positions.begin(), positions.end(), 0);
    const bool ends = piece.begin + length == length_of_document;
    const auto labels = into_.labels.subspan(at_, length);
    std::copy_n(from + 1, ends ? length - 1 : length, labels.begin());
    if (ends) labels.back() = kNoLabel;
    end_sequence(length);
  }

  void pad_to(std::size_t end) {
    const std::size_t length = end - at_;
    if (length == 0) return;
    std::fill_n(tokens_ + at_, length, pad_);
    std::ranges::fill(into_.segment_ids.subspan(at_, length), 0);
    std::ranges::fill(into_.positions.subspan(at_, length), 0);
    std::ranges::fill(into_.labels.subspan(at_, length), kNoLabel);
    end_sequence(length);
  }

  SequenceBounds take() && { return std::move(bounds_); }

 private:
  void end_sequence(std::size_t length) {
    at_ += length;
    bounds_.cu_seqlens.push_back(static_cast<std::int32_t>(at_));
    bounds_.max_seqlen =
        std::max(bounds_.max_seqlen, static_cast<std::int32_t>(length));
  }

  const Token* values_;
  std::span<const std::int64_t> offsets_;
  Token pad_;
  Token* tokens_;
  PackedArrays into_;
  std::size_t at_ = 0;  // Within the rows end to end.
  SequenceBounds bounds_;
};

template <class Token>
Result<SequenceBounds> fill(const DocumentTokens& documents,
                            const PackedRows& rows, std::uint32_t capacity,
                            std::int64_t pad_token, const PackedArrays& into) {
  if (!std::in_range<Token>(pad_token)) {
    return invalid("pad_token={}, and the documents' tokens are {}", pad_token,
                   to_string(documents.dtype));
  }
  Filler<Token> filler(documents, static_cast<Token>(pad_token), into);
  for (std::size_t row = 0; row < rows.rows(); ++row) {
    LEAT_TRY_VOID(check(documents, rows, row, capacity));
    std::int32_t segment = 0;
    for (const PackPiece& piece : rows.row(row)) {
      if (piece.length > 0) filler.add(piece, ++segment);
    }
    filler.pad_to((row + 1) * capacity);
  }
  return std::move(filler).take();
}

}  // namespace

Result<SequenceBounds> fill_packed(const DocumentTokens& documents,
                                   const PackedRows& rows,
                                   std::uint32_t capacity,
                                   std::int64_t pad_token,
                                   const PackedArrays& into) {
  LEAT_TRY_VOID(check(documents));
  constexpr std::uint64_t kMost = 0x7fffffff;
  if (rows.rows() > 0 && capacity > kMost / rows.rows()) {
    return invalid("{} rows of {} tokens; a batch has fewer than {}",
                   rows.rows(), capacity, kMost + 1);
  }
  const auto fill_as = [&]<class Token>(Token) {
    return fill<Token>(documents, rows, capacity, pad_token, into);
  };
  switch (documents.dtype) {
    case DType::kUint8:
      return fill_as(std::uint8_t{});
    case DType::kUint16:
      return fill_as(std::uint16_t{});
    case DType::kUint32:
      return fill_as(std::uint32_t{});
    case DType::kInt32:
      return fill_as(std::int32_t{});
    case DType::kInt64:
      return fill_as(std::int64_t{});
    default:
      return invalid(
          "documents of {}; tokens are uint8, uint16, uint32, int32 or int64",
          to_string(documents.dtype));
  }
}

}  // namespace leat
