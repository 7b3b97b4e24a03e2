#include "leat/cache/record_policy.h"

#include <utility>

#include "leat/cache/segment_format.h"

namespace leat {

RecordPolicy::RecordPolicy(const CachePolicySpec& spec,
                           const CachePolicyKind& kind)
    : most_records_(spec.samples), kind_(kind) {}

Result<std::unique_ptr<RecordPolicy>> RecordPolicy::make(CachePolicySpec spec) {
  const CachePolicyKind* const kind = find_cache_policy_kind(spec.name);
  if (kind == nullptr) return make_cache_policy(spec).error();
  std::unique_ptr<RecordPolicy> made(new RecordPolicy(spec, *kind));
  if (spec.planned != nullptr) {
    spec.planned = [of = made.get(),
                    planned = std::move(spec.planned)](SampleId number) {
      const SampleId sample = of->records_[number.value].sample;
      return sample != PlannedRecord::kNoSample && planned(sample);
    };
  }
  LEAT_TRY(made->policy_, make_cache_policy(spec));
  return made;
}

std::vector<RecordKey> RecordPolicy::keys() const {
  std::vector<RecordKey> keys;
  keys.reserve(number_of_.size());
  for (const auto& [key, number] : number_of_) keys.push_back(key);
  return keys;
}

void RecordPolicy::used(const PlannedRecord& record, AccessTime now,
                        AccessTime next_use, std::vector<PlannedRecord>& drop) {
  const SampleId number = number_of_.at(record.key);
  records_[number.value] = record;
  policy_->used(number, now, next_use, dropped_);
  take_back(drop);
}

bool RecordPolicy::admit(const PlannedRecord& record, AccessTime now,
                         AccessTime next_use,
                         std::vector<PlannedRecord>& drop) {
  if (free_.empty() && records_.size() >= most_records_) return false;
  if (free_.empty()) {
    free_.push_back({records_.size()});
    records_.emplace_back();
  }
  const SampleId number = free_.back();
  records_[number.value] = record;
  if (!policy_->admit(number, record_cost(record.length_bytes), now, next_use,
                      dropped_)) {
    return false;
  }
  free_.pop_back();
  number_of_.emplace(record.key, number);
  take_back(drop);
  return true;
}

void RecordPolicy::lost(const RecordKey& key) {
  const auto found = number_of_.find(key);
  if (found == number_of_.end()) return;
  policy_->lost(found->second);
  free_.push_back(found->second);
  number_of_.erase(found);
}

void RecordPolicy::set_capacity(std::uint64_t bytes,
                                std::vector<PlannedRecord>& drop) {
  policy_->set_capacity(bytes, dropped_);
  take_back(drop);
}

void RecordPolicy::take_back(std::vector<PlannedRecord>& drop) {
  for (const SampleId number : dropped_) {
    drop.push_back(records_[number.value]);
    number_of_.erase(drop.back().key);
    free_.push_back(number);
  }
  dropped_.clear();
}

}  // namespace leat
