// Whether each sample of an epoch came once.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "leat/base/hash.h"
#include "leat/base/ids.h"
#include "leat/engine/order_log/run.h"

namespace leat {

/// A set of samples: a bit each, in pages that exist only where there are any.
class SampleSet {
 public:
  /// False if it was there.
  bool insert(SampleId sample);
  std::uint64_t size() const { return size_; }
  /// The first number below `samples` that is not in it; `samples`: none.
  std::uint64_t first_missing(std::uint64_t samples) const;
  void clear();

 private:
  static constexpr std::uint64_t kPageBits = 4096;
  using Page = std::array<std::uint64_t, kPageBits / 64>;

  std::unordered_map<std::uint64_t, std::unique_ptr<Page>> pages_;
  std::uint64_t size_ = 0;
};

/// One epoch of a run, as far as there are logs of it.
struct OrderEpoch {
  std::uint64_t epoch = 0;
  std::uint64_t from = 0;  ///< The positions [from, to) came.
  std::uint64_t to = 0;
  std::uint64_t steps = 0;
  std::uint64_t largest_step = 0;  ///< In positions.
  std::uint64_t samples = 0;       ///< Rows but for padding.
  std::uint64_t distinct = 0;      ///< Different samples in them.
  std::uint64_t padding = 0;
  std::uint64_t substitutes = 0;
  bool is_drawn = false;  ///< By weights or a sampler: samples may come again.
  bool is_whole = false;  ///< From position 0 to the end.
  std::uint64_t of_samples = 0;  ///< The dataset's; 0: unknown.
};

/// "6 steps, 60 samples: each of 60 once".
std::string to_string(const OrderEpoch& epoch);

/// Follows a run and counts its samples. Holds a bit for each sample of the
/// dataset.
///
/// Threads: one at a time.
class OnceCheck {
 public:
  /// Takes the next step. Returns the fault: a sample came twice in an epoch
  /// that is not a draw.
  std::optional<std::string> take(const OrderStep& step);
  /// Returns the fault: a sample is missing.
  std::optional<std::string> take(const OrderEpochEnd& end);

  /// The epochs so far, the running one last.
  const std::vector<OrderEpoch>& epochs() const { return epochs_; }
  /// A number that equal streams of equal steps have in common, whatever their
  /// numbers of ranks.
  Hash128 digest() const { return digest_; }

 private:
  void begin(const OrderStep& step);
  /// Returns the row of a sample that had come before.
  std::optional<std::uint64_t> count(const OrderLogBatch& rank);

  SampleSet seen_;
  std::vector<OrderEpoch> epochs_;
  Hash128 digest_;
};

}  // namespace leat
