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
#include "leat/pipeline/cut.h"
#include "leat/pipeline/delivered_field.h"
#include "leat/plan/cache_form.h"
#include "leat/runtime/memory_budget.h"
#include "leat/store/record_cache.h"

namespace leat {

/// A sample whose ops run both ways, to see the cost of each; made by
/// DecodedForm::begin_trial(). The holder reports the result, once, or lets the
/// trial die: then another sample takes its place.
class FormTrial;

/// The records that a cache keeps of the columns whose fields can all be cut at
/// one place: for a share of the samples the values there, for the others the
/// bytes.
///
/// Threads:  any.
/// Lifetime: `records` outlives it, and it all trials.
class DecodedForm {
 public:
  /// How many samples are tried before the form is chosen.
  static constexpr std::uint32_t kTrials = 32;

  /// The results of all trials: for samples that have a decoded record, the
  /// means except `fetch_seconds`, which are 0.
  struct Findings {
    std::uint32_t tried = 0;
    std::uint32_t with_record = 0;
    std::uint64_t epoch = 0;  ///< The latest that they were of.
    FormCosts costs;
  };
  /// Called once, by the thread that ends the last trial.
  using OnFound = std::function<void(const Findings&)>;

  DecodedForm(RecordCache& records, const std::vector<DeliveredField>& fields);

  /// Whether there is any column that it is for.
  static bool is_for(const std::vector<DeliveredField>& fields);

  RecordCache& records() const { return records_; }
  /// Null where the column is kept as bytes.
  const Cut* cut_of(std::size_t column) const;
  std::size_t columns() const { return cuts_.size(); }

  /// Keeps that share of the samples decoded from now on, from 0 to 1: those
  /// with the smallest hash of their numbers, in every process the same.
  void keep_share(double share) { share_ = share; }
  double share() const { return share_; }
  bool keeps(SampleId sample) const;

  /// Makes records that this run does not read again, too: the cache outlives
  /// it. Before the first sample is read.
  void keep_for_later_runs() { is_for_later_runs_ = true; }
  bool is_for_later_runs() const { return is_for_later_runs_; }

  /// From now on samples are tried, until `on_found` has been told.
  void begin_trials(OnFound on_found);
  /// Whether they still are: nobody has chosen a form.
  bool is_open() const { return is_open_; }
  /// Null unless another sample is to be tried.
  std::unique_ptr<FormTrial> begin_trial();

  /// The longest record made so far, for the code that reserves memory for one.
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

  /// The observations so far.
  FormCosts costs;
  std::uint64_t epoch = 0;
  /// It had a decoded record, and that is what it cost.
  void end_with_record() { end(true); }
  void end_without_record() { end(false); }

 private:
  void end(bool has_record);
  DecodedForm* form_;  // Null once it has ended.
};

/// The work of a sample's column for its record.
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
  /// Bytes reserved for a record that is still to be made; 0: it was looked
  /// for, or is the bytes.
  std::uint64_t room_bytes = 0;
  /// It was planned before a form was chosen: whether a record is made, and
  /// whether there is room for one, is seen when its ops run.
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
