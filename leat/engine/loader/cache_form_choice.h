// The form in which a loader's cache keeps samples: as set, or chosen by cost.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "leat/base/clock.h"
#include "leat/base/mutex.h"
#include "leat/base/result.h"
#include "leat/engine/loader/control.h"
#include "leat/engine/loader/opened.h"
#include "leat/engine/loader/schedule.h"
#include "leat/pipeline/decoded_form.h"
#include "leat/tune/decision.h"

namespace leat {

/// Keeps samples as bytes or decoded. If the option leaves that open, the first
/// samples are made in both forms, and the choice is made once.
///
/// Threads: any; the result of the trials arrives on the thread that ended the
/// last one. Lifetime: the others outlive it; it outlives the runs.
class CacheFormChoice {
 public:
  CacheFormChoice(const Job& job, const Opened& opened, const Control& control,
                  TimePoint opened_at);

  /// Settles the form for the fields that are delivered; does nothing if it is
  /// settled already. REQUIRES: the cache is open, if there is one.
  /// Errors: kInvalidArgument: the form was set and is not possible
  Result<void> open(const std::vector<DeliveredField>& fields,
                    const Schedule& schedule);
  /// Null if no sample is kept decoded.
  DecodedForm* decoded() const;

  /// Fills in what the choice has gained, from an epoch that is over.
  void judge(const EpochStats& at);
  /// Set once measurements have led to a choice, even to keep the usual form.
  std::optional<Decision> decision() const;
  /// Adds a sample's cache room and its savings. `totals` has its counts.
  void add_to(LoaderTotals& totals) const;

 private:
  struct Chosen {
    Decision decision;
    std::uint64_t epoch = 0;  ///< The epoch it was made in.
    /// Seconds a sample, all kept as bytes, by the model; 0: not computed.
    double encoded_seconds = 0;
    double cores = 1;
  };

  void choose_by(const DecodedForm::Findings& found);
  Chosen chosen_by(const DecodedForm::Findings& found) const
      LEAT_REQUIRES(mutex_);
  FormCosts costs_by(const DecodedForm::Findings& found,
                     const LoaderTotals& totals) const;
  double cache_bytes_of_job(const LoaderTotals& totals) const;

  const Job& job_;
  const Opened& opened_;
  const Control& control_;
  const TimePoint opened_at_;
  mutable Mutex mutex_;  // Taken after any other.
  bool is_settled_ LEAT_GUARDED_BY(mutex_) = false;
  std::unique_ptr<DecodedForm> decoded_ LEAT_GUARDED_BY(mutex_);
  /// Nullopt: unknown when the form was settled.
  std::optional<std::uint64_t> samples_ LEAT_GUARDED_BY(mutex_);
  bool may_mix_ LEAT_GUARDED_BY(mutex_) = true;
  std::optional<Chosen> chosen_ LEAT_GUARDED_BY(mutex_);
};

}  // namespace leat
