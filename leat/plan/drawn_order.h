// Orders that are no permutations: drawn by weight, or told epoch by epoch.
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

namespace leat {

/// One epoch of such an order: a sample may stand at several positions, or at
/// none. Threads: any; it never changes.
class DrawnEpoch {
 public:
  virtual ~DrawnEpoch() = default;

  virtual std::uint64_t size() const = 0;
  /// The first position that is known.
  virtual std::uint64_t first() const { return 0; }
  /// REQUIRES: first() <= position < size().
  virtual SampleId at(std::uint64_t position) const = 0;
  /// The ends of its steps; null: steps end as those of a global batch do.
  virtual std::shared_ptr<const std::vector<std::uint64_t>> ends() const {
    return nullptr;
  }
};

/// All epochs of a job. Threads: any.
class DrawnOrder {
 public:
  virtual ~DrawnOrder() = default;
  /// Null while nobody has told it. A later call may give another.
  virtual std::shared_ptr<const DrawnEpoch> epoch(
      std::uint64_t epoch) const = 0;
  /// How many positions an epoch has; nullopt: not known yet.
  virtual std::optional<std::uint64_t> size(std::uint64_t epoch) const = 0;
};

/// Each position draws one of the samples by its weight, independent of the
/// others ("with replacement"): a function of (seed, epoch, position) alone.
class WeightedOrder final : public DrawnOrder {
 public:
  /// `size` positions an epoch. O(samples).
  /// Errors: as AliasTable::make; kInvalidArgument: a size of 0
  static Result<std::shared_ptr<const WeightedOrder>> make(
      std::span<const double> weights, std::uint64_t seed, std::uint64_t size);

  std::shared_ptr<const DrawnEpoch> epoch(std::uint64_t epoch) const override;
  std::optional<std::uint64_t> size(std::uint64_t /*epoch*/) const override {
    return size_;
  }
  /// The digest of the weights. Neither seed nor size are in it.
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
  std::uint64_t first = 0;  ///< The position of the first of `samples`.
  std::vector<std::uint64_t> samples;
  /// The positions behind each step, rising, the last behind all samples;
  /// empty: steps have a global batch.
  std::vector<std::uint64_t> ends;
};

/// Epochs as somebody tells them, one after another.
class GivenOrder final : public DrawnOrder {
 public:
  explicit GivenOrder(std::uint64_t dataset_samples)
      : dataset_samples_(dataset_samples) {}

  /// Replaces an earlier answer for that epoch.
  /// Errors: kInvalidArgument: a sample that is not there, ends that do not
  /// rise
  Result<void> give(std::uint64_t epoch, GivenEpoch given);
  /// The size of epochs that nobody has told yet.
  void expect_size(std::uint64_t size);
  void forget_before(std::uint64_t epoch);

  std::shared_ptr<const DrawnEpoch> epoch(std::uint64_t epoch) const override;
  std::optional<std::uint64_t> size(std::uint64_t epoch) const override;
  /// The digest of an epoch as it was told; nullopt: it was not.
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
  /// Rising. REQUIRES: sample < dataset_samples.
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
