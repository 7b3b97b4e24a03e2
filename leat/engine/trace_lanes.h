// The rows of a picture, on each of which no two slices overlap.
#pragma once
#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "leat/base/clock.h"
#include "leat/metrics/stalls.h"

namespace leat {

/// Gives each slice the first row that is free at its beginning. There are as
/// many rows as simultaneous slices, and a loader that looks far ahead has ten
/// thousand samples in preparation. A tree over the times at which rows become
/// free finds the first in as many steps as it has levels.
///
/// Threads: one at a time.
class TraceLanes {
 public:
  /// Takes a row for a slice. Rows count from 0; a new row is numbered
  /// next.
  std::size_t take(Interval time) {
    if (!is_free(kRoot, time.begin)) grow();
    std::size_t node = kRoot;
    while (node < rows_) {
      node = 2 * node + (is_free(2 * node, time.begin) ? 0 : 1);
    }
    const std::size_t row = node - rows_;
    busy_until_[node] = time.end;
    while (node > kRoot) {
      node /= 2;
      join(node);
    }
    return row;
  }

 private:
  static constexpr std::size_t kRoot = 1;

  bool is_free(std::size_t node, TimePoint at) const {
    return busy_until_[node] <= at;
  }
  void join(std::size_t node) {
    busy_until_[node] =
        std::min(busy_until_[2 * node], busy_until_[2 * node + 1]);
  }
  void grow() {
    std::vector<TimePoint> larger(4 * rows_, TimePoint::min());
    std::copy_n(busy_until_.begin() + static_cast<std::ptrdiff_t>(rows_), rows_,
                larger.begin() + static_cast<std::ptrdiff_t>(2 * rows_));
    busy_until_ = std::move(larger);
    rows_ *= 2;
    for (std::size_t node = rows_ - 1; node >= kRoot; --node) join(node);
  }

  std::size_t rows_ = 1;  ///< A power of two; includes unused ones.
  /// Node i has the minimum of 2 i and 2 i + 1; rows begin at `rows_`.
  std::vector<TimePoint> busy_until_{TimePoint::min(), TimePoint::min()};
};

}  // namespace leat
