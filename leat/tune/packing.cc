// The simplex method in a dense tableau of few rows. Item j is column j and
// lies in [0, 1] (scaled by `most`); a row's slack is column n + i and has no
// upper end. Every column outside the basis is at one of its ends. Rows are
// scaled by their capacity, so all figures are near 1.

#include "leat/tune/packing.h"

#include <cmath>
#include <limits>
#include <optional>

namespace leat {
namespace {

constexpr double kTiny = 1e-10;
constexpr double kNoEnd = std::numeric_limits<double>::infinity();

class Tableau {
 public:
  Tableau(std::span<const PackingItem> items, const PackedAmounts& capacity)
      : columns_(items.size() + capacity.size()),
        rows_(capacity.size()),
        values_(capacity.size()),
        basis_(capacity.size()) {
    ends_.assign(columns_, kNoEnd);
    gains_.assign(columns_, 0);
    is_high_.assign(columns_, false);
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      rows_[i].assign(columns_, 0);
      const bool binds = std::isfinite(capacity[i]);
      // A capacity of none takes whole rows: scaled by 1, its right side is 0.
      const double scale = binds && capacity[i] > 0 ? capacity[i] : 1;
      for (std::size_t j = 0; binds && j < items.size(); ++j) {
        rows_[i][j] = items[j].needs[i] * items[j].most / scale;
      }
      rows_[i][items.size() + i] = 1;
      values_[i] = binds && capacity[i] <= 0 ? 0 : 1;
      basis_[i] = items.size() + i;
    }
    for (std::size_t j = 0; j < items.size(); ++j) {
      ends_[j] = 1;
      gains_[j] = items[j].worth * items[j].most;
    }
  }

  void solve() {
    // Far more than a few rows can take; the last half by the first column
    // that gains, which cannot go in circles.
    const std::size_t turns = 20 * columns_ + 100;
    for (std::size_t turn = 0; turn < turns; ++turn) {
      const auto entering = choose(turn > turns / 2);
      if (!entering) return;
      move(*entering);
    }
  }

  double value_of(std::size_t column) const {
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (basis_[i] == column) return values_[i];
    }
    return is_high_[column] ? 1 : 0;
  }

 private:
  bool is_basic(std::size_t column) const {
    for (const std::size_t basic : basis_) {
      if (basic == column) return true;
    }
    return false;
  }

  std::optional<std::size_t> choose(bool takes_first) const {
    std::optional<std::size_t> best;
    double most = kTiny;
    for (std::size_t j = 0; j < columns_; ++j) {
      const double gain = is_high_[j] ? -gains_[j] : gains_[j];
      if (gain <= most || is_basic(j)) continue;
      best = j;
      if (takes_first) break;
      most = gain;
    }
    return best;
  }

  void move(std::size_t column) {
    const double way = is_high_[column] ? -1 : 1;
    double step = ends_[column];
    std::optional<std::size_t> leaving;
    bool leaves_high = false;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const double change = way * rows_[i][column];
      double room = kNoEnd;
      if (change > kTiny) room = values_[i] / change;
      if (change < -kTiny) room = (values_[i] - ends_[basis_[i]]) / change;
      if (room < step) {
        step = room < 0 ? 0 : room;
        leaving = i;
        leaves_high = change < 0;
      }
    }
    if (!std::isfinite(step)) {  // Costs nothing: only a slack is like that.
      gains_[column] = 0;
      return;
    }
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      values_[i] -= way * step * rows_[i][column];
    }
    if (!leaving) {
      is_high_[column] = !is_high_[column];
      return;
    }
    const double entered = (is_high_[column] ? 1 : 0) + way * step;
    is_high_[basis_[*leaving]] = leaves_high;
    is_high_[column] = false;
    basis_[*leaving] = column;
    values_[*leaving] = entered;
    pivot(*leaving, column);
  }

  void pivot(std::size_t row, std::size_t column) {
    const double by = rows_[row][column];
    for (double& cell : rows_[row]) cell /= by;
    const auto clear = [&](std::vector<double>& other) {
      const double factor = other[column];
      if (factor == 0) return;
      for (std::size_t j = 0; j < columns_; ++j) {
        other[j] -= factor * rows_[row][j];
      }
      other[column] = 0;
    };
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (i != row) clear(rows_[i]);
    }
    clear(gains_);
  }

  std::size_t columns_;
  std::vector<std::vector<double>> rows_;
  std::vector<double> values_;  ///< The values of the basis.
  std::vector<std::size_t> basis_;
  std::vector<double> ends_;
  /// The gain by a unit more, all else kept feasible.
  std::vector<double> gains_;
  /// True for columns not in basis that are at their upper end.
  std::vector<bool> is_high_;
};

}  // namespace

std::vector<double> pack(std::span<const PackingItem> items,
                         const PackedAmounts& capacity) {
  Tableau tableau(items, capacity);
  tableau.solve();
  std::vector<double> amounts(items.size());
  for (std::size_t j = 0; j < items.size(); ++j) {
    const double part = tableau.value_of(j);
    amounts[j] = items[j].most * (part < 0 ? 0 : part > 1 ? 1 : part);
  }
  return amounts;
}

}  // namespace leat
