#include "leat/plan/packing.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace leat {
namespace {

using Lengths = std::vector<std::uint64_t>;

/// The lengths of the pieces of each row.
std::vector<Lengths> lengths_of(const PackedRows& rows) {
  std::vector<Lengths> found;
  for (std::size_t i = 0; i < rows.rows(); ++i) {
    Lengths& row = found.emplace_back();
    for (const PackPiece& piece : rows.row(i)) row.push_back(piece.length);
  }
  return found;
}

std::vector<Lengths> packed(const Lengths& lengths,
                            const PackOptions& options) {
  const auto rows = pack(lengths, options);
  if (!rows) {
    ADD_FAILURE() << rows.error().message();
    return {};
  }
  return lengths_of(*rows);
}

TEST(PackingTest, BestFitTakesTheRowWithTheLeastRoomThatIsEnough) {
  // 5 opens a second row, since 6 leaves 4; 4 fits both, and 6 closely.
  EXPECT_EQ(packed({6, 5, 4, 3}, {.capacity = 10}),
            (std::vector<Lengths>{{6, 4}, {5, 3}}));
}

TEST(PackingTest, FirstFitTakesTheFirstRowWithRoom) {
  // 3 fits both rows. Best fit would put it beside 6.
  const Lengths lengths = {5, 6, 3};
  EXPECT_EQ(packed(lengths, {.capacity = 10, .method = PackMethod::kFirstFit}),
            (std::vector<Lengths>{{5, 3}, {6}}));
  EXPECT_EQ(packed(lengths, {.capacity = 10}),
            (std::vector<Lengths>{{5}, {6, 3}}));
}

TEST(PackingTest, WhereNothingFitsTheFullestRowCloses) {
  for (const PackMethod method :
       {PackMethod::kBestFit, PackMethod::kFirstFit}) {
    const PackOptions options = {.capacity = 10, .method = method, .bins = 2};
    EXPECT_EQ(packed({6, 7, 5, 5, 4}, options),
              (std::vector<Lengths>{{7}, {5, 5}, {6, 4}}))
        << to_string(method);
    // 9 is fuller than both rows.
    EXPECT_EQ(packed({6, 7, 9, 4, 3}, options),
              (std::vector<Lengths>{{9}, {6, 4}, {7, 3}}))
        << to_string(method);
  }
}

TEST(PackingTest, ConcatThenSplitCutsWhereARowIsFull) {
  const auto rows =
      pack(Lengths{4, 0, 9, 2},
           {.capacity = 5, .method = PackMethod::kConcatThenSplit});
  ASSERT_TRUE(rows.has_value());
  EXPECT_EQ(rows->pieces,
            (std::vector<PackPiece>{
                {0, 0, 4}, {0, 2, 1}, {1, 2, 5}, {6, 2, 3}, {0, 3, 2}}));
  EXPECT_EQ(rows->offsets, (std::vector<std::size_t>{0, 2, 3, 5}));
}

TEST(PackingTest, ARowHasAtMostMaxSequences) {
  const Lengths ones(5, 1);
  for (const std::string_view name :
       {"best_fit", "first_fit", "concat_then_split"}) {
    EXPECT_EQ(packed(ones, {.capacity = 10,
                            .method = *parse_pack_method(name),
                            .max_sequences = 2}),
              (std::vector<Lengths>{{1, 1}, {1, 1}, {1}}))
        << name;
  }
}

TEST(PackingTest, ALongDocumentIsSplitTruncatedOrRefused) {
  PackOptions options = {.capacity = 10};
  EXPECT_EQ(packed({3, 25}, options),
            (std::vector<Lengths>{{10}, {10}, {3, 5}}));

  options.long_documents = LongDocuments::kTruncate;
  EXPECT_EQ(packed({3, 25}, options), (std::vector<Lengths>{{10}, {3}}));

  options.long_documents = LongDocuments::kRefuse;
  EXPECT_EQ(packed({3, 10}, options), (std::vector<Lengths>{{10}, {3}}));
  const auto refused = pack(Lengths{3, 25}, options);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(
      refused.error().message(),
      "document 1 of the window has 25 tokens, and a row 10; give a larger "
      "capacity, or long_documents=\"split\" or \"truncate\"");
}

TEST(PackingTest, NothingMakesNoRows) {
  for (const std::string_view name :
       {"best_fit", "first_fit", "concat_then_split"}) {
    const PackOptions options = {.capacity = 4,
                                 .method = *parse_pack_method(name)};
    EXPECT_EQ(packed({}, options), std::vector<Lengths>());
    EXPECT_EQ(packed({0, 0}, options), std::vector<Lengths>());
  }
}

std::string packing_refusal(const Lengths& lengths,
                            const PackOptions& options) {
  const auto rows = pack(lengths, options);
  return rows ? "" : rows.error().message();
}

TEST(PackingTest, OptionsOutOfRangeAreNamed) {
  EXPECT_EQ(packing_refusal({1}, {}),
            "capacity=0; a row has 1 to 2147483647 tokens");
  EXPECT_EQ(packing_refusal({1}, {.capacity = 0x80000000}),
            "capacity=2147483648; a row has 1 to 2147483647 tokens");
  EXPECT_EQ(packing_refusal({1}, {.capacity = 1, .bins = 0}),
            "bins=0; at least one row is open at a time");
  EXPECT_EQ(packing_refusal({1}, {.capacity = 1,
                                  .method = PackMethod::kConcatThenSplit,
                                  .long_documents = LongDocuments::kRefuse}),
            "long_documents=\"raise\" with method=\"concat_then_split\", which "
            "cuts documents wherever a row is full; leave it out, or choose "
            "best_fit or first_fit");
  // A length that nobody meant must not eat all memory.
  for (const std::uint64_t length :
       {~std::uint64_t{0}, std::uint64_t{1} << 33}) {
    EXPECT_NE(
        packing_refusal({1, length}, {.capacity = 1}).find("document 1 of"),
        std::string::npos);
  }
  EXPECT_EQ(parse_pack_method("fit").error().message(),
            "method=\"fit\"; it is one of best_fit, first_fit, "
            "concat_then_split");
  EXPECT_EQ(parse_long_documents("drop").error().message(),
            "long_documents=\"drop\"; it is one of split, truncate, raise");
}

// A plan is part of what a saved state counts on.
TEST(PackingTest, ThePlanOfAWindowNeverChanges) {
  const Lengths lengths = {3, 8, 12, 1, 5, 7, 2, 9, 6, 4};
  PackOptions options = {.capacity = 10, .bins = 2};
  EXPECT_EQ(
      packed(lengths, options),
      (std::vector<Lengths>{{10}, {8, 2}, {3, 1, 5}, {7, 2}, {6, 4}, {9}}));
  options.method = PackMethod::kFirstFit;
  EXPECT_EQ(
      packed(lengths, options),
      (std::vector<Lengths>{{10}, {8}, {7}, {9}, {3, 2, 1, 2}, {5, 4}, {6}}));
}

// --- against a model --------------------------------------------------------

/// The same rules with one list of open rows, in the order in which they began.
class Model {
 public:
  explicit Model(const PackOptions& options) : options_(options) {}

  void put(std::uint64_t length) {
    std::size_t into = open_.size();
    for (std::size_t i = 0; i < open_.size(); ++i) {
      const bool is_first = into == open_.size();
      const bool is_better = options_.method == PackMethod::kBestFit &&
                             !is_first && room(open_[i]) < room(open_[into]);
      if (room(open_[i]) >= length && (is_first || is_better)) into = i;
    }
    if (into == open_.size()) {
      if (open_.size() == options_.bins) {
        std::size_t fullest = 0;
        for (std::size_t i = 1; i < open_.size(); ++i) {
          if (room(open_[i]) < room(open_[fullest])) fullest = i;
        }
        if (options_.capacity - length < room(open_[fullest])) {
          closed_.push_back({length});
          return;
        }
        close(fullest);
      }
      into = open_.size();
      open_.emplace_back();
    }
    open_[into].push_back(length);
    if (room(open_[into]) == 0 ||
        open_[into].size() == options_.max_sequences) {
      close(into);
    }
  }

  std::vector<Lengths> rows() && {
    while (!open_.empty()) close(0);
    return std::move(closed_);
  }

 private:
  std::uint64_t room(const Lengths& row) const {
    return options_.capacity - std::accumulate(row.begin(), row.end(), 0ULL);
  }
  void close(std::size_t i) {
    closed_.push_back(open_[i]);
    open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(i));
  }

  PackOptions options_;
  std::vector<Lengths> open_;
  std::vector<Lengths> closed_;
};

std::vector<Lengths> model_of(const Lengths& lengths,
                              const PackOptions& options) {
  Model model(options);
  for (std::uint64_t length : lengths) {
    for (; length > options.capacity; length -= options.capacity) {
      model.put(options.capacity);
    }
    if (length > 0) model.put(length);
  }
  return std::move(model).rows();
}

rc::Gen<PackOptions> some_options() {
  return rc::gen::build<PackOptions>(
      rc::gen::set(&PackOptions::capacity,
                   rc::gen::inRange<std::uint32_t>(1, 40)),
      rc::gen::set(&PackOptions::method,
                   rc::gen::element(PackMethod::kBestFit, PackMethod::kFirstFit,
                                    PackMethod::kConcatThenSplit)),
      rc::gen::set(&PackOptions::bins, rc::gen::inRange<std::uint32_t>(1, 9)),
      rc::gen::set(&PackOptions::max_sequences,
                   rc::gen::inRange<std::uint32_t>(0, 6)));
}

rc::Gen<Lengths> some_lengths() {
  return rc::gen::container<Lengths>(rc::gen::inRange<std::uint64_t>(0, 60));
}

RC_GTEST_PROP(PackingProperty, IsTheModels, ()) {
  PackOptions options = *some_options();
  if (options.method == PackMethod::kConcatThenSplit) {
    options.method = PackMethod::kBestFit;
  }
  const Lengths lengths = *some_lengths();
  const auto rows = pack(lengths, options);
  RC_ASSERT(rows.has_value());
  RC_ASSERT(lengths_of(*rows) == model_of(lengths, options));
}

RC_GTEST_PROP(PackingProperty, EachTokenIsInOneRow, ()) {
  const PackOptions options = *some_options();
  const Lengths lengths = *some_lengths();
  const auto rows = pack(lengths, options);
  RC_ASSERT(rows.has_value());
  RC_ASSERT(rows->offsets.back() == rows->pieces.size());

  std::vector<std::vector<PackPiece>> of_document(lengths.size());
  for (std::size_t i = 0; i < rows->rows(); ++i) {
    std::uint64_t tokens = 0;
    for (const PackPiece& piece : rows->row(i)) {
      RC_ASSERT(piece.length > 0U);
      tokens += piece.length;
      of_document.at(piece.sample).push_back(piece);
    }
    RC_ASSERT(!rows->row(i).empty());
    RC_ASSERT(tokens <= options.capacity);
    RC_ASSERT(options.max_sequences == 0U ||
              rows->row(i).size() <= options.max_sequences);
    RC_ASSERT(std::ranges::is_sorted(rows->row(i), {}, &PackPiece::sample));
  }
  for (std::size_t sample = 0; sample < lengths.size(); ++sample) {
    std::ranges::sort(of_document[sample], {}, &PackPiece::begin);
    std::uint64_t end = 0;
    for (const PackPiece& piece : of_document[sample]) {
      RC_ASSERT(piece.begin == end);
      end += piece.length;
    }
    RC_ASSERT(end == lengths[sample]);
  }
}

}  // namespace
}  // namespace leat
