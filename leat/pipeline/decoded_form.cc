#include "leat/pipeline/decoded_form.h"

#include <algorithm>
#include <set>
#include <utility>

namespace leat {
namespace {

using Cuts = std::map<std::size_t, std::shared_ptr<const CutChain>>;

/// The cuts of the columns whose fields all share one.
Cuts cuts_of(const std::vector<DeliveredField>& fields) {
  Cuts cuts;
  std::set<std::size_t> without;
  for (const DeliveredField& field : fields) {
    if (!field.is_fetched()) continue;
    if (field.cut_chain == nullptr) {
      without.insert(field.column);
      continue;
    }
    const auto [found, is_new] = cuts.emplace(field.column, field.cut_chain);
    if (found->second->cut->name() != field.cut_chain->cut->name()) {
      without.insert(field.column);
    }
  }
  for (const std::size_t column : without) cuts.erase(column);
  return cuts;
}

}  // namespace

DecodedForm::DecodedForm(RecordCache& records,
                         const std::vector<DeliveredField>& fields)
    : records_(records), cuts_(cuts_of(fields)) {}

bool DecodedForm::is_for(const std::vector<DeliveredField>& fields) {
  return !cuts_of(fields).empty();
}

const Cut* DecodedForm::cut_of(std::size_t column) const {
  const auto found = cuts_.find(column);
  return found == cuts_.end() ? nullptr : found->second->cut.get();
}

bool DecodedForm::keeps(SampleId sample) const {
  // 53 bits, so that no sample is at 1.
  const double place = static_cast<double>(mix64(sample.value) >> 11) * 0x1p-53;
  return place < share_;
}

void DecodedForm::begin_trials(OnFound on_found) {
  const MutexLock lock(mutex_);
  on_found_ = std::move(on_found);
  trials_left_ = kTrials;
  is_open_ = true;
}

std::unique_ptr<FormTrial> DecodedForm::begin_trial() {
  const MutexLock lock(mutex_);
  if (trials_left_ == 0) return nullptr;
  --trials_left_;
  return std::make_unique<FormTrial>(*this);
}

void DecodedForm::learn_record(std::uint64_t bytes) {
  std::uint64_t longest = longest_;
  while (bytes > longest && !longest_.compare_exchange_weak(longest, bytes)) {
  }
}

void DecodedForm::end_trial(const FormTrial& trial, bool has_record) {
  Findings found;
  OnFound told;
  {
    const MutexLock lock(mutex_);
    ++findings_.tried;
    findings_.epoch = std::max(findings_.epoch, trial.epoch);
    if (has_record) {
      const FormCosts& costs = trial.costs;
      ++findings_.with_record;
      findings_.costs.encoded_bytes += costs.encoded_bytes;
      findings_.costs.decoded_bytes += costs.decoded_bytes;
      findings_.costs.whole_seconds += costs.whole_seconds;
      findings_.costs.before_seconds += costs.before_seconds;
      findings_.costs.rest_seconds += costs.rest_seconds;
    }
    if (findings_.tried < kTrials) return;
    found = findings_;
    told = std::move(on_found_);
  }
  if (found.with_record != 0) {
    FormCosts& means = found.costs;
    for (double* sum :
         {&means.encoded_bytes, &means.decoded_bytes, &means.whole_seconds,
          &means.before_seconds, &means.rest_seconds}) {
      *sum /= found.with_record;
    }
  }
  told(found);
  is_open_ = false;
}

FormTrial::~FormTrial() {
  if (form_ == nullptr) return;
  const MutexLock lock(form_->mutex_);
  ++form_->trials_left_;
}

void FormTrial::end(bool has_record) {
  std::exchange(form_, nullptr)->end_trial(*this, has_record);
}

}  // namespace leat
