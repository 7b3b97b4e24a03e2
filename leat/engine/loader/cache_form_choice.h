// In which form a loader's cache keeps samples: as told, or by what they cost.
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

/// Keeps samples as bytes or decoded. If that is left open, the first samples
/// are made in both forms, and it chooses once.
///
/// Threads:  any; what was tried comes on the thread that ended the last trial.
/// Lifetime: the others outlive it; it outlives the runs.
class CacheFormChoice {
 public:
  CacheFormChoice(const Job& job, const Opened& opened, const Control& control,
                  TimePoint opened_at);

  /// Settles the form by the fields that are delivered; does nothing if it was
  /// settled. REQUIRES: the cache is open, if there is one.
  /// Errors: kInvalidArgument: told, and it cannot be
  Result<void> open(const std::vector<DeliveredField>& fields,
                    const Schedule& schedule);
  /// Null where no sample is kept decoded.
  DecodedForm* decoded() const;

  /// Fills in what the choice has brought, by an epoch that is over.
  void judge(const EpochStats& at);
  /// Once a form was chosen by what was measured, also where it stays.
  std::optional<Decision> decision() const;
  /// Adds what a sample takes of the cache, and saves. `rates` has counts.
  void add_to(LoaderRates& rates) const;

 private:
  struct Chosen {
    Decision decision;
    std::uint64_t epoch = 0;  ///< In which it was.
    /// A sample, all kept as bytes, by the model; 0: it was not asked.
    double encoded_seconds = 0;
    double cores = 1;
  };

  void choose_by(const DecodedForm::Findings& found);
  Chosen chosen_by(const DecodedForm::Findings& found) const
      LEAT_REQUIRES(mutex_);
  FormCosts costs_by(const DecodedForm::Findings& found,
                     const LoaderRates& rates) const;
  double cache_bytes_of_job(const LoaderRates& rates) const;

  const Job& job_;
  const Opened& opened_;
  const Control& control_;
  const TimePoint opened_at_;
  mutable Mutex mutex_;  // Taken last.
  bool is_settled_ LEAT_GUARDED_BY(mutex_) = false;
  std::unique_ptr<DecodedForm> decoded_ LEAT_GUARDED_BY(mutex_);
  /// Nullopt: not known when it was settled.
  std::optional<std::uint64_t> samples_ LEAT_GUARDED_BY(mutex_);
  bool may_mix_ LEAT_GUARDED_BY(mutex_) = true;
  std::optional<Chosen> chosen_ LEAT_GUARDED_BY(mutex_);
};

}  // namespace leat
