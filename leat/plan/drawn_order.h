// Orders that are not permutations: drawn by weight, or given epoch by epoch.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "leat/base/hash.h"
#include "leat/base/ids.h"
#include "leat/base/mutex.h"
#include "leat/base/result.h"
#include "leat/plan/alias_table.h"
#include "leat/plan/steps.h"

namespace leat {

/// One epoch of such an order: a sample may be at several positions, or at
/// none. Threads: any; it never changes.
class DrawnEpoch {
 public:
  virtual ~DrawnEpoch() = default;

  virtual std::uint64_t size() const = 0;
  /// The first known position.
  virtual std::uint64_t first() const { return 0; }
  /// REQUIRES: first() <= position < size().
  virtual SampleId at(std::uint64_t position) const = 0;
  /// The source of a sample, counted from 0; a stream that is not mixed has
  /// one.
  virtual std::uint32_t source_of(SampleId /*sample*/) const { return 0; }
  /// Its rows; none: steps have a global batch of samples each.
  virtual StepRows rows() const { return {}; }

  /// Whether its samples lie in pieces that ranks can divide, as those of a
  /// block shuffle do.
  virtual bool has_lanes() const { return false; }
  /// See EpochOrder::place_of(). REQUIRES: has_lanes().
  virtual std::uint32_t place_of(std::uint64_t position) const;
  /// See EpochOrder::position_near(). REQUIRES: has_lanes().
  virtual std::optional<std::uint64_t> position_near(
      SampleId sample, std::uint64_t position) const;
};

/// All epochs of a job. Threads: any.
class DrawnOrder {
 public:
  virtual ~DrawnOrder() = default;
  /// Null until it has been given. A later call may return another.
  virtual std::shared_ptr<const DrawnEpoch> epoch(
      std::uint64_t epoch) const = 0;
  /// The number of positions of an epoch; nullopt: unknown as yet.
  virtual std::optional<std::uint64_t> size(std::uint64_t epoch) const = 0;
};

/// Each position draws a sample by weight, independently of the others ("with
/// replacement"): a function of (seed, epoch, position) alone.
class WeightedOrder final : public DrawnOrder {
 public:
  /// `size` is the number of positions of an epoch. O(samples).
  /// Errors: as AliasTable::make; kInvalidArgument: a size of 0
  static Result<std::shared_ptr<const WeightedOrder>> make(
      std::span<const double> weights, std::uint64_t seed, std::uint64_t size);

  std::shared_ptr<const DrawnEpoch> epoch(std::uint64_t epoch) const override;
  std::optional<std::uint64_t> size(std::uint64_t /*epoch*/) const override {
    return size_;
  }
  /// The digest of the weights. It does not cover seed and size.
  Hash128 digest() const { return table_->digest(); }
  std::uint64_t samples() const { return table_->size(); }

 private:
  WeightedOrder(std::shared_ptr<const AliasTable> table, std::uint64_t seed,
                std::uint64_t size)
      : table_(std::move(table)), seed_(seed), size_(size) {}

  std::shared_ptr<const AliasTable> table_;
  std::uint64_t seed_;
  std::uint64_t size_;
};

/// The known part of an epoch.
struct GivenEpoch {
  std::uint64_t first = 0;  ///< The position of the first in `samples`.
  std::vector<std::uint64_t> samples;
  /// The end position of each row, ascending, the last after all samples;
  /// empty: steps have a global batch of samples each.
  std::vector<std::uint64_t> ends;
  std::uint64_t rows_of_a_step = 1;  ///< Over all ranks.
  /// How ranks divide the steps of rows from some position on; none: in runs.
  std::optional<DealtSteps> dealt = std::nullopt;

  /// The samples of the largest step; 0 without rows.
  std::uint64_t largest_step() const;
};

/// Epochs that the caller gives, one after another.
class GivenOrder final : public DrawnOrder {
 public:
  explicit GivenOrder(std::uint64_t dataset_samples)
      : dataset_samples_(dataset_samples) {}

  /// Replaces an earlier order of that epoch.
  /// Errors: kInvalidArgument: a sample out of range, ends that do not ascend,
  /// no rows in a step, or as DealtSteps::check()
  Result<void> give(std::uint64_t epoch, GivenEpoch given);
  /// The size of epochs that have not been given yet.
  void expect_size(std::uint64_t size);
  void forget_before(std::uint64_t epoch);

  std::shared_ptr<const DrawnEpoch> epoch(std::uint64_t epoch) const override;
  std::optional<std::uint64_t> size(std::uint64_t epoch) const override;
  /// The digest of an epoch as given; nullopt: not given.
  std::optional<Hash128> digest(std::uint64_t epoch) const;

 private:
  const std::uint64_t dataset_samples_;
  mutable Mutex mutex_;
  std::map<std::uint64_t, std::shared_ptr<const DrawnEpoch>> epochs_
      LEAT_GUARDED_BY(mutex_);
  std::map<std::uint64_t, Hash128> digests_ LEAT_GUARDED_BY(mutex_);
  std::optional<std::uint64_t> expected_ LEAT_GUARDED_BY(mutex_);
};

/// The positions of each sample in an epoch: the inverse of a drawn order.
/// Takes 8 bytes a sample of the dataset and 8 a position. Threads: any.
class DrawnPositions {
 public:
  DrawnPositions(const DrawnEpoch& epoch, std::uint64_t dataset_samples);
  /// Ascending. REQUIRES: sample < dataset_samples.
  std::span<const std::uint64_t> of(SampleId sample) const {
    return std::span(positions_)
        .subspan(begin_[sample.value],
                 begin_[sample.value + 1] - begin_[sample.value]);
  }

 private:
  std::vector<std::uint64_t> begin_;  // In positions_; one more than samples.
  std::vector<std::uint64_t> positions_;
};

}  // namespace leat
