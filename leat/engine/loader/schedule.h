// The samples of each step of each epoch.
#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "leat/base/result.h"
#include "leat/engine/dataset.h"
#include "leat/engine/loader/job.h"
#include "leat/engine/loader_state.h"
#include "leat/pipeline/delivered_field.h"
#include "leat/plan/holder_dealing.h"
#include "leat/plan/next_use.h"
#include "leat/plan/order.h"
#include "leat/plan/ready_first.h"
#include "leat/plan/steps.h"

namespace leat {

/// The dataset as far as it is known, and what follows from it: the steps of an
/// epoch, which rank gets which sample, when one is read again.
///
/// Shards that are being indexed have no catalogue until adopt().
///
/// Threads:  one at a time: the loader's lock.
/// Lifetime: `job` outlives it.
class Schedule {
 public:
  Schedule(const Job& job, Dataset dataset);

  const Dataset& dataset() const { return dataset_; }
  const Catalogue* catalogue() const { return dataset_.catalogue.get(); }
  const std::vector<DeliveredField>& fields() const { return fields_; }
  /// Null unless shards are read in pieces, or a shuffle has windows.
  const std::shared_ptr<const BlockMap>& blocks() const { return blocks_; }

  /// Samples a step, over all ranks; of steps of rows, those of the largest.
  std::uint64_t global_batch() const {
    return std::max(told_batch_, largest_step_);
  }
  /// As the user or a state says it: samples, or rows.
  void set_global_batch(std::uint64_t size) { told_batch_ = size; }
  /// A step of rows has this many samples: a state tells the rows that the user
  /// has chosen, at any number of ranks.
  void expect_step_of(std::uint64_t samples) {
    largest_step_ = std::max(largest_step_, samples);
  }
  std::uint64_t told_batch() const { return told_batch_; }

  /// Takes the catalogue that was made from the shards. On failure there is
  /// none, as before. Errors: as check_world_size() and open_fields()
  Result<void> adopt(std::shared_ptr<const Catalogue> made);
  /// Gives up what adopt() took.
  void forget_catalogue() { dataset_.catalogue.reset(); }
  /// Chooses fields and makes blocks. REQUIRES: there is a catalogue.
  /// Errors: as choose_fields()
  Result<void> open_fields();
  /// The fields to deliver of a catalogue. Errors: as choose_fields()
  Result<std::vector<DeliveredField>> fields_of(
      const Catalogue& catalogue) const;

  /// Samples of the dataset, and positions of an epoch; nullopt: unknown yet.
  std::optional<std::uint64_t> samples() const;
  std::optional<std::uint64_t> samples_in(std::uint64_t epoch) const;
  /// The steps of an epoch from a position on. Errors: as Steps::make()
  Result<Steps> steps_of(std::uint64_t epoch, std::uint64_t from) const;
  /// The number of batches of this rank in them; nullopt as in samples_in().
  std::optional<std::uint64_t> batches_of(std::uint64_t epoch,
                                          std::uint64_t from) const;
  /// Errors: kInvalidArgument: no such steps, or some ranks would get a batch
  ///         less than others without `join`
  Result<void> check_steps_of(std::uint64_t epoch, std::uint64_t from) const;
  /// The same, but if orders are given later, the check waits for them.
  Result<void> check_steps(std::uint64_t epoch, std::uint64_t from) const;
  /// REQUIRES: there is a catalogue. Errors: kInvalidArgument: too many ranks
  Result<void> check_world_size() const;
  /// Errors: kInvalidArgument: the order of the epoch has not been given
  Result<void> check_known(std::uint64_t epoch) const;

  /// Whether ranks read pieces, each in its own part of the lanes.
  bool is_in_lanes() const;
  /// All options but the sample that is asked about.
  NextUseOptions next_use_options(std::uint64_t epoch,
                                  std::uint64_t from) const;
  /// None without a cache.
  Result<std::optional<NextUse>> next_use(std::uint64_t epoch,
                                          std::uint64_t from) const;
  /// The room of each sample in a tier, if kept as stored. REQUIRES: there is a
  /// catalogue.
  std::function<std::uint64_t(SampleId)> costs_of_samples() const;
  /// Delivers samples first that are cached or were skipped before.
  Result<std::optional<ReadyFirst>> ready_first(
      const Steps& steps, const std::vector<std::uint64_t>& behind) const;

  /// Once the cache is open, settles how samples are dealt to their holders, if
  /// they are. Without a catalogue it only checks what it can. Errors: as
  /// HolderDealing::make
  Result<void> plan_dealing();
  bool deals() const { return holders_.has_value(); }
  /// Deals for a run that begins in that epoch. REQUIRES: deals().
  /// Errors: as HolderDealing::make; kInvalidArgument: too far to simulate
  Result<std::unique_ptr<HolderDealing>> make_dealing(
      std::uint64_t epoch) const;
  /// See Loader::dealing().
  std::string dealing_in_words() const;

 private:
  const Job& job_;
  Dataset dataset_;
  std::vector<DeliveredField> fields_;
  std::shared_ptr<const BlockMap> blocks_;
  std::uint64_t told_batch_ = 0;    ///< See set_global_batch().
  std::uint64_t largest_step_ = 0;  ///< In rows as they were told; 0: no rows.
  std::optional<HolderDealingOptions> holders_;  // None: no holders are used.
};

/// Epochs of a mix may differ in length, so each is checked as it begins.
/// Errors: as check_known() and check_steps()
Result<void> check_next_of_mix(const Job& job, const Schedule& schedule,
                               std::uint64_t epoch, std::uint64_t from);

/// The draws as LoaderState keeps them, at a position in `epoch` of an order
/// that had the digest `resumed` when a state was made.
std::optional<DrawnState> drawn_state(const Job& job, std::uint64_t epoch,
                                      std::uint64_t position,
                                      const std::string& resumed);

}  // namespace leat
