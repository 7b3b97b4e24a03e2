#include "leat/pipeline/packed_batch.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace leat {
namespace {

template <class Token>
struct Packed {
  std::vector<Token> tokens;
  std::vector<std::int32_t> segment_ids;
  std::vector<std::int32_t> positions;
  std::vector<std::int64_t> labels;
  SequenceBounds bounds;
  std::string error;
};

/// Documents 0 to 3: 10 11 12, none, 20, 30 31 32 33 34.
template <class Token>
Packed<Token> packed(DType dtype, const PackedRows& rows,
                     std::uint32_t capacity, std::int64_t pad_token = 7) {
  const std::vector<Token> values = {10, 11, 12, 20, 30, 31, 32, 33, 34};
  const std::vector<std::int64_t> offsets = {0, 3, 3, 4, 9};
  const std::size_t n = rows.rows() * capacity;
  Packed<Token> found{std::vector<Token>(n),
                      std::vector<std::int32_t>(n, -1),
                      std::vector<std::int32_t>(n, -1),
                      std::vector<std::int64_t>(n, -1),
                      {},
                      {}};
  auto bounds =
      fill_packed({.dtype = dtype,
                   .values = std::as_bytes(std::span(values)),
                   .offsets = offsets},
                  rows, capacity, pad_token,
                  {.tokens = std::as_writable_bytes(std::span(found.tokens)),
                   .segment_ids = found.segment_ids,
                   .positions = found.positions,
                   .labels = found.labels});
  if (bounds) {
    found.bounds = *std::move(bounds);
  } else {
    found.error = bounds.error().message();
  }
  return found;
}

/// Document 3 in two rows; the second has padding.
const PackedRows kRows = {
    .pieces = {{0, 3, 2}, {0, 0, 3}, {2, 3, 3}, {0, 2, 1}},
    .offsets = {0, 2, 4}};

TEST(PackedBatchTest, FillsAllArraysInOnePass) {
  const auto found = packed<std::uint16_t>(DType::kUint16, kRows, 5);

  ASSERT_EQ(found.error, "");
  EXPECT_EQ(found.tokens, (std::vector<std::uint16_t>{30, 31, 10, 11, 12,  //
                                                      32, 33, 34, 20, 7}));
  EXPECT_EQ(found.segment_ids,
            (std::vector<std::int32_t>{1, 1, 2, 2, 2, 1, 1, 1, 2, 0}));
  EXPECT_EQ(found.positions,
            (std::vector<std::int32_t>{0, 1, 0, 1, 2, 0, 1, 2, 0, 0}));
  // 32 follows 31 in its document, though in another row.
  EXPECT_EQ(found.labels,
            (std::vector<std::int64_t>{31, 32, 11, 12, -100,  //
                                       33, 34, -100, -100, -100}));
  EXPECT_EQ(found.bounds.cu_seqlens,
            (std::vector<std::int32_t>{0, 2, 5, 8, 9, 10}));
  EXPECT_EQ(found.bounds.max_seqlen, 3);
}

TEST(PackedBatchTest, EachTypeOfTokensHasTheSameRows) {
  const auto like = packed<std::int64_t>(DType::kInt64, kRows, 5);
  ASSERT_EQ(like.error, "");
  const auto expect_like = [&]<class Token>(DType dtype, Token) {
    const auto found = packed<Token>(dtype, kRows, 5);
    EXPECT_EQ(found.error, "");
    EXPECT_EQ(
        std::vector<std::int64_t>(found.tokens.begin(), found.tokens.end()),
        like.tokens);
    EXPECT_EQ(found.labels, like.labels);
  };
  expect_like(DType::kUint8, std::uint8_t{});
  expect_like(DType::kUint16, std::uint16_t{});
  expect_like(DType::kUint32, std::uint32_t{});
  expect_like(DType::kInt32, std::int32_t{});
}

TEST(PackedBatchTest, PaddingCountsAsASequence) {
  const PackedRows rows = {.pieces = {{0, 2, 1}}, .offsets = {0, 1}};
  const auto found = packed<std::int32_t>(DType::kInt32, rows, 6);

  EXPECT_EQ(found.bounds.cu_seqlens, (std::vector<std::int32_t>{0, 1, 6}));
  EXPECT_EQ(found.bounds.max_seqlen, 5);
}

TEST(PackedBatchTest, NoRowsMakeNoSequences) {
  const auto found = packed<std::int32_t>(DType::kInt32, {}, 6);

  EXPECT_EQ(found.error, "");
  EXPECT_EQ(found.bounds.cu_seqlens, (std::vector<std::int32_t>{0}));
  EXPECT_EQ(found.bounds.max_seqlen, 0);
}

TEST(PackedBatchTest, RowsThatDoNotFitTheDocumentsAreNamed) {
  const auto error = [](std::vector<PackPiece> pieces, std::uint32_t capacity) {
    const std::vector<std::size_t> offsets = {0, pieces.size()};
    return packed<std::uint8_t>(DType::kUint8, {std::move(pieces), offsets},
                                capacity)
        .error;
  };
  EXPECT_EQ(error({{0, 4, 1}}, 5),
            "row 0 has a piece of document 4, and there are 4");
  EXPECT_EQ(
      error({{2, 0, 2}}, 5),
      "row 0 has tokens 2 to 4 of document 0, which has 3; plan rows with "
      "the lengths that documents really have");
  EXPECT_EQ(error({{~std::uint64_t{0}, 0, 2}}, 5).substr(0, 16),
            "row 0 has tokens");
  EXPECT_EQ(error({{0, 0, 3}, {0, 2, 1}}, 3),
            "row 0 has 4 tokens, and its capacity is 3");
}

TEST(PackedBatchTest, WrongTypesAndOffsetsAreNamed) {
  EXPECT_EQ(packed<std::uint8_t>(DType::kUint8, kRows, 5, 256).error,
            "pad_token=256, and the documents' tokens are uint8");
  EXPECT_EQ(packed<float>(DType::kFloat32, kRows, 5).error,
            "documents of float32; tokens are uint8, uint16, uint32, int32 or "
            "int64");
  const std::vector<std::byte> values(3);
  for (const std::vector<std::int64_t>& offsets :
       {std::vector<std::int64_t>{0, 4}, {0, 2, 1}, {-1, 2}}) {
    EXPECT_EQ(
        fill_packed(
            {.dtype = DType::kUint8, .values = values, .offsets = offsets}, {},
            1, 0, {})
            .error()
            .message(),
        "offsets of documents fall, or leave the 3 tokens; they rise from "
        "0");
  }
  EXPECT_EQ(
      fill_packed({.dtype = DType::kUint8}, {}, 1, 0, {}).error().message(),
      "no offsets; documents have one more than there are of them");
  PackedRows many;
  many.offsets.resize(70000);
  const std::vector<std::int64_t> offsets = {0};
  EXPECT_EQ(fill_packed({.dtype = DType::kUint8, .offsets = offsets}, many,
                        1U << 20, 0, {})
                .error()
                .message(),
            "69999 rows of 1048576 tokens; a batch has fewer than 2147483648");
}

}  // namespace
}  // namespace leat
