// The last epochs of a loader, which may run for ever.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "leat/engine/loader_stats.h"
#include "leat/engine/loader_totals.h"

namespace leat {

/// Keeps the stats of the last epochs, and sums of those that it dropped.
///
/// Threads: one at a time.
class KeptEpochs {
 public:
  static constexpr std::size_t kMost = 256;

  /// Begins an epoch; drops the oldest one if there are kMost.
  void begin(std::uint64_t epoch);

  bool empty() const { return kept_.empty(); }
  /// The epoch that began last. REQUIRES: one did
  EpochStats& last() { return kept_.back(); }
  const EpochStats& last() const { return kept_.back(); }
  /// The kept ones, the oldest first.
  std::vector<EpochStats> all() const { return {kept_.begin(), kept_.end()}; }

  /// Adds samples, waits and the number of all epochs, dropped ones included.
  void add_to(LoaderTotals& totals) const;

 private:
  std::deque<EpochStats> kept_;
  LoaderTotals dropped_;  // Its samples, waits and epochs.
};

}  // namespace leat
