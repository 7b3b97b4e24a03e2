// The samples that a cache keeps decoded, and the known costs of both forms.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "leat/base/ids.h"
#include "leat/base/mutex.h"
#include "leat/pipeline/delivered_field.h"
#include "leat/pipeline/program/cut.h"
#include "leat/plan/cache_form.h"
#include "leat/runtime/memory_budget.h"
#include "leat/store/record_cache.h"

namespace leat {

/// A sample whose ops run both ways, to measure the cost of each; made by
/// DecodedForm::begin_trial(). The holder reports the result once, or destroys
/// the trial: then another sample takes its place.
class FormTrial;

/// The records that a cache keeps of columns whose fields can all be cut at one
/// point: for a share of the samples the values there, for the others the
/// bytes.
///
/// Threads: any. Lifetime: `records` must outlive it, and it must outlive all
/// trials.
class DecodedForm {
 public:
  /// The number of samples tried before the form is chosen.
  static constexpr std::uint32_t kTrials = 32;

  /// The results of all trials. Means over samples that have a decoded record,
  /// except for `fetch_seconds`, which is 0.
  struct Findings {
    std::uint32_t tried = 0;
    std::uint32_t with_record = 0;
    std::uint64_t epoch = 0;  ///< The latest epoch of any trial.
    FormCosts costs;
  };
  /// Called once, by the thread that ends the last trial.
  using OnFound = std::function<void(const Findings&)>;

  DecodedForm(RecordCache& records, const std::vector<DeliveredField>& fields);

  /// Whether it applies to any column.
  static bool is_for(const std::vector<DeliveredField>& fields);

  RecordCache& records() const { return records_; }
  /// Null if the column is kept as bytes.
  const Cut* cut_of(std::size_t column) const;
  std::size_t columns() const { return cuts_.size(); }

  /// From now on keeps this share of the samples decoded, from 0 to 1: those
  /// with the smallest hash of their numbers, the same in every process.
  void keep_share(double share) { share_ = share; }
  double share() const { return share_; }
  bool keeps(SampleId sample) const;

  /// Also makes records that this run does not read again, since the cache
  /// outlives it. Call before the first sample is read.
  void keep_for_later_runs() { is_for_later_runs_ = true; }
  bool is_for_later_runs() const { return is_for_later_runs_; }

  /// From now on samples are tried, until `on_found` has been called.
  void begin_trials(OnFound on_found);
  /// Whether trials continue: no form has been chosen.
  bool is_open() const { return is_open_; }
  /// Null unless another sample should be tried.
  std::unique_ptr<FormTrial> begin_trial();

  /// The longest record made so far, for code that reserves memory for one.
  std::uint64_t longest_record() const { return longest_; }
  void learn_record(std::uint64_t bytes);

 private:
  friend class FormTrial;
  void end_trial(const FormTrial& trial, bool has_record);

  RecordCache& records_;
  std::map<std::size_t, std::shared_ptr<const CutChain>> cuts_;
  bool is_for_later_runs_ = false;
  std::atomic<double> share_ = 0;
  std::atomic<bool> is_open_ = false;
  std::atomic<std::uint64_t> longest_ = 0;

  Mutex mutex_;
  OnFound on_found_ LEAT_GUARDED_BY(mutex_);
  std::uint32_t trials_left_ LEAT_GUARDED_BY(mutex_) = 0;  // To begin.
  Findings findings_ LEAT_GUARDED_BY(mutex_);              // Sums, until told.
};

class FormTrial {
 public:
  explicit FormTrial(DecodedForm& form) : form_(&form) {}
  ~FormTrial();
  FormTrial(const FormTrial&) = delete;
  FormTrial& operator=(const FormTrial&) = delete;

  /// The costs observed so far.
  FormCosts costs;
  std::uint64_t epoch = 0;
  /// Reports that the sample had a decoded record, and what that cost.
  void end_with_record() { end(true); }
  void end_without_record() { end(false); }

 private:
  void end(bool has_record);
  DecodedForm* form_;  // Null once it has ended.
};

/// The work on the record of one column of a sample.
struct RecordWork {
  RecordWork() = default;
  RecordWork(const RecordWork&) = delete;
  RecordWork& operator=(const RecordWork&) = delete;
  ~RecordWork() {
    if (turn_of != nullptr) turn_of->end_turn(id);
  }

  const Cut* cut =
      nullptr;  ///< Null: its bytes are to be kept, out of a piece.
  RecordId id;
  ReadHint hint;
  /// Bytes reserved for a record that is still to be made; 0: a record was
  /// found, or it is the bytes themselves.
  std::uint64_t room_bytes = 0;
  /// The sample was planned before a form was chosen: whether to make a record,
  /// and whether it has room, is decided when its ops run.
  bool is_open = false;
  Reservation late_room;  ///< Memory for such a record.
  std::unique_ptr<FormTrial> trial;
  /// Other processes wait for us to make it, until it is offered or this dies.
  RecordCache* turn_of = nullptr;
  Buffer made;
  /// Found or made; empty: there is none, the bytes are there instead. Written
  /// by the thread that brings the last byte, or the one that runs the ops.
  std::span<const std::byte> record;
};

}  // namespace leat
