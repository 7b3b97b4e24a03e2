// Online bin packing with a bounded number of open bins (J. Csirik and D. S.
// Johnson, "Bounded Space On-Line Bin Packing: Best is Better than First",
// 2001). A row is a bin. If a document fits into none and no more may open, the
// fullest one closes; or the document's own, if it alone would be fuller.
//
// Documents are met in the order of the window, and each piece is kept beside
// the number of its row. Rows close in another order than they begin, so the
// pieces are sorted by row at the end, by counting.

#include "leat/plan/packing.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include "leat/base/errors.h"

namespace leat {
namespace {

constexpr std::array<std::string_view, 3> kMethods = {"best_fit", "first_fit",
                                                      "concat_then_split"};
constexpr std::array<std::string_view, 3> kLongDocuments = {"split", "truncate",
                                                            "raise"};
constexpr std::uint64_t kMostPieces = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint32_t kMostCapacity = 0x7fffffff;  // cu_seqlens are int32.

constexpr std::uint32_t kNoRow = ~0U;

/// Finds the first open row with enough room, in the order of their numbers.
/// Rows are leaves of a tree that knows the most and the least room under each
/// node. A new row takes the next leaf, and where there is none, the open rows
/// move to the front; so leaves are twice as many as rows.
class FirstFit {
 public:
  explicit FirstFit(std::uint32_t bins)
      : leaves_(std::bit_ceil(std::size_t{2} * bins)),
        nodes_(2 * leaves_),
        rows_(leaves_, kNoRow) {}

  /// kNoRow if there is no such row.
  std::uint32_t find(std::uint32_t length) const {
    if (nodes_[1].most < length) return kNoRow;
    std::size_t node = 1;
    while (node < leaves_) {
      node *= 2;
      if (nodes_[node].most < length) ++node;
    }
    return rows_[node - leaves_];
  }
  /// REQUIRES: a row is open.
  std::uint32_t fullest() const {
    std::size_t node = 1;
    while (node < leaves_) {
      node *= 2;
      if (nodes_[node].least > nodes_[node / 2].least) ++node;
    }
    return rows_[node - leaves_];
  }
  /// REQUIRES: `row` is above all others.
  void open(std::uint32_t row, std::uint32_t room) {
    if (used_ == leaves_) move_to_front();
    rows_[used_] = row;
    set(used_++, {.most = room, .least = room});
  }
  void change(std::uint32_t row, std::uint32_t /*before*/, std::uint32_t room) {
    set(leaf_of(row), {.most = room, .least = room});
  }
  void close(std::uint32_t row, std::uint32_t /*room*/) {
    set(leaf_of(row), {});
  }

 private:
  struct Room {  // Without an open row, nothing fits and all others are fuller.
    std::uint32_t most = 0;
    std::uint32_t least = ~0U;
  };

  std::size_t leaf_of(std::uint32_t row) const {
    const auto end = rows_.begin() + static_cast<std::ptrdiff_t>(used_);
    return static_cast<std::size_t>(std::lower_bound(rows_.begin(), end, row) -
                                    rows_.begin());
  }
  void set(std::size_t leaf, const Room& room) {
    std::size_t node = leaves_ + leaf;
    nodes_[node] = room;
    while ((node /= 2) > 0) nodes_[node] = joined(node);
  }
  Room joined(std::size_t node) const {
    const Room& left = nodes_[2 * node];
    const Room& right = nodes_[2 * node + 1];
    return {.most = std::max(left.most, right.most),
            .least = std::min(left.least, right.least)};
  }
  void move_to_front() {
    used_ = 0;
    for (std::size_t leaf = 0; leaf < leaves_; ++leaf) {
      const Room room = std::exchange(nodes_[leaves_ + leaf], {});
      if (room.most == 0) continue;  // It is closed.
      nodes_[leaves_ + used_] = room;
      rows_[used_++] = rows_[leaf];
    }
    for (std::size_t node = leaves_; --node > 0;) nodes_[node] = joined(node);
  }

  std::size_t leaves_;
  std::vector<Room> nodes_;
  std::vector<std::uint32_t> rows_;  // By leaf, rising; closed ones, too.
  std::size_t used_ = 0;             // Leaves that had a row.
};

/// Finds the open row with the least room that is enough; the first of equals.
class BestFit {
 public:
  explicit BestFit(std::uint32_t /*bins*/) {}

  std::uint32_t find(std::uint32_t length) const {
    const auto found = by_room_.lower_bound({length, 0});
    return found == by_room_.end() ? kNoRow : found->second;
  }
  std::uint32_t fullest() const { return by_room_.begin()->second; }
  void open(std::uint32_t row, std::uint32_t room) {
    by_room_.emplace(room, row);
  }
  void change(std::uint32_t row, std::uint32_t before, std::uint32_t room) {
    auto node = by_room_.extract({before, row});
    node.value().first = room;
    by_room_.insert(std::move(node));
  }
  void close(std::uint32_t row, std::uint32_t room) {
    by_room_.erase({room, row});
  }

 private:
  std::set<std::pair<std::uint32_t, std::uint32_t>> by_room_;
};

/// Rows while they fill, by numbers in the order in which they began.
template <class Finder>
class RowFilling {
 public:
  RowFilling(const PackOptions& options, std::uint32_t bins)
      : capacity_(options.capacity),
        max_sequences_(options.max_sequences),
        bins_(bins),
        finder_(bins) {}

  /// REQUIRES: 0 < piece.length <= capacity.
  void put(const PackPiece& piece) {
    std::uint32_t number = finder_.find(piece.length);
    if (number == kNoRow) number = open_for(piece.length);
    Row& row = rows_[number];
    arrived_.push_back(piece);
    row_of_.push_back(number);
    const std::uint32_t before =
        std::exchange(row.room, row.room - piece.length);
    ++row.sequences;
    if (!row.is_open) {
      close(number);
    } else if (row.room == 0 || row.sequences == max_sequences_) {
      finder_.close(number, before);
      --open_;
      close(number);
    } else {
      finder_.change(number, before, row.room);
    }
  }

  PackedRows finish() && {
    for (std::uint32_t number = 0; number < rows_.size(); ++number) {
      if (rows_[number].is_open) close(number);
    }
    return sorted();
  }

 private:
  struct Row {
    std::uint32_t room = 0;
    std::uint32_t sequences = 0;
    std::uint32_t place = 0;  // Among the closed ones.
    bool is_open = true;
  };

  /// A row for a document that fits into none. If it alone is fuller than all
  /// open rows, its row is not opened.
  std::uint32_t open_for(std::uint32_t length) {
    const auto number = static_cast<std::uint32_t>(rows_.size());
    rows_.push_back({.room = capacity_});
    if (open_ == bins_) {
      const std::uint32_t fullest = finder_.fullest();
      if (capacity_ - length < rows_[fullest].room) {
        rows_[number].is_open = false;
        return number;
      }
      finder_.close(fullest, rows_[fullest].room);
      --open_;
      close(fullest);
    }
    finder_.open(number, capacity_);
    ++open_;
    return number;
  }

  void close(std::uint32_t number) {
    Row& row = rows_[number];
    row.is_open = false;
    row.place = static_cast<std::uint32_t>(offsets_.size() - 1);
    offsets_.push_back(offsets_.back() + row.sequences);
  }

  PackedRows sorted() {
    PackedRows packed;
    packed.pieces.resize(arrived_.size());
    std::vector<std::size_t> next = offsets_;
    for (std::size_t i = 0; i < arrived_.size(); ++i) {
      packed.pieces[next[rows_[row_of_[i]].place]++] = arrived_[i];
    }
    packed.offsets = std::move(offsets_);
    return packed;
  }

  const std::uint32_t capacity_;
  const std::uint32_t max_sequences_;
  const std::uint32_t bins_;
  std::uint32_t open_ = 0;
  Finder finder_;
  std::vector<Row> rows_;
  std::vector<PackPiece> arrived_;
  std::vector<std::uint32_t> row_of_;    // The row of each of these.
  std::vector<std::size_t> offsets_{0};  // The rows that are closed.
};

template <class Finder>
PackedRows fit(std::span<const std::uint64_t> lengths,
               const PackOptions& options) {
  const std::uint64_t capacity = options.capacity;
  // No more can be open: a document has at most one piece that
  // is not a whole row.
  RowFilling<Finder> filling(
      options, static_cast<std::uint32_t>(
                   std::clamp<std::size_t>(lengths.size(), 1, options.bins)));
  for (std::uint32_t sample = 0; sample < lengths.size(); ++sample) {
    std::uint64_t left = lengths[sample];
    if (options.long_documents == LongDocuments::kTruncate) {
      left = std::min(left, capacity);
    }
    for (std::uint64_t begin = 0; left > 0;) {
      const std::uint64_t length = std::min(left, capacity);
      filling.put({begin, sample, static_cast<std::uint32_t>(length)});
      begin += length;
      left -= length;
    }
  }
  return std::move(filling).finish();
}

PackedRows concat_then_split(std::span<const std::uint64_t> lengths,
                             const PackOptions& options) {
  PackedRows rows;
  std::uint64_t room = options.capacity;
  std::uint32_t sequences = 0;
  const auto close = [&] {
    rows.offsets.push_back(rows.pieces.size());
    room = options.capacity;
    sequences = 0;
  };
  for (std::uint32_t sample = 0; sample < lengths.size(); ++sample) {
    for (std::uint64_t begin = 0; begin < lengths[sample];) {
      const std::uint64_t length = std::min(lengths[sample] - begin, room);
      rows.pieces.push_back(
          {begin, sample, static_cast<std::uint32_t>(length)});
      begin += length;
      room -= length;
      if (room == 0 || ++sequences == options.max_sequences) close();
    }
  }
  if (rows.offsets.back() < rows.pieces.size()) close();
  return rows;
}

Result<void> check(const PackOptions& options) {
  if (options.capacity == 0 || options.capacity > kMostCapacity) {
    return invalid("capacity={}; a row has 1 to {} tokens", options.capacity,
                   kMostCapacity);
  }
  if (options.bins == 0) {
    return invalid("bins=0; at least one row is open at a time");
  }
  if (options.method == PackMethod::kConcatThenSplit &&
      options.long_documents != LongDocuments::kSplit) {
    return invalid(
        "long_documents=\"{}\" with method=\"concat_then_split\", which cuts "
        "documents wherever a row is full; leave it out, or choose best_fit or "
        "first_fit",
        kLongDocuments[static_cast<std::size_t>(options.long_documents)]);
  }
  return {};
}

Result<void> check(std::span<const std::uint64_t> lengths,
                   const PackOptions& options) {
  if (lengths.size() > kMostPieces) {
    return invalid("{} documents in a window; at most {} can be",
                   lengths.size(), kMostPieces);
  }
  std::uint64_t pieces = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    if (options.long_documents == LongDocuments::kRefuse &&
        lengths[i] > options.capacity) {
      return invalid(
          "document {} of the window has {} tokens, and a row {}; give a "
          "larger capacity, or long_documents=\"split\" or \"truncate\"",
          i, lengths[i], options.capacity);
    }
    const std::uint64_t whole =
        options.long_documents == LongDocuments::kTruncate
            ? 0
            : lengths[i] / options.capacity;
    // And one more piece at each end, in rows that it shares.
    if (whole > kMostPieces || (pieces += whole + 2) > kMostPieces) {
      return invalid(
          "document {} of the window has {} tokens, which makes more than {} "
          "pieces of {}; give a shorter window or a larger capacity",
          i, lengths[i], kMostPieces, options.capacity);
    }
  }
  return {};
}

template <class Enum>
Result<Enum> parse(std::span<const std::string_view> names,
                   std::string_view argument, std::string_view name) {
  const auto found = std::ranges::find(names, name);
  if (found != names.end()) return static_cast<Enum>(found - names.begin());
  return invalid("{}=\"{}\"; it is one of {}", argument, name,
                 fmt::join(names, ", "));
}

}  // namespace

std::string_view to_string(PackMethod method) {
  return kMethods[static_cast<std::size_t>(method)];
}
Result<PackMethod> parse_pack_method(std::string_view name) {
  return parse<PackMethod>(kMethods, "method", name);
}

Result<LongDocuments> parse_long_documents(std::string_view name) {
  return parse<LongDocuments>(kLongDocuments, "long_documents", name);
}

Result<PackedRows> pack(std::span<const std::uint64_t> lengths,
                        const PackOptions& options) {
  LEAT_TRY_VOID(check(options));
  LEAT_TRY_VOID(check(lengths, options));
  switch (options.method) {
    case PackMethod::kBestFit:
      return fit<BestFit>(lengths, options);
    case PackMethod::kFirstFit:
      return fit<FirstFit>(lengths, options);
    case PackMethod::kConcatThenSplit:
      return concat_then_split(lengths, options);
  }
  return invalid("no such method of packing");
}

}  // namespace leat
