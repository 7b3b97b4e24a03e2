#include "leat/cache/record_policy.h"

namespace leat {

void RecordPolicy::used(const RecordKey& key, AccessTime now,
                        AccessTime next_use, std::vector<RecordKey>& drop) {
  policy_->used(number_of_.at(key), now, next_use, dropped_);
  take_back(drop);
}

bool RecordPolicy::admit(const RecordKey& key, std::uint64_t bytes,
                         AccessTime now, AccessTime next_use,
                         std::vector<RecordKey>& drop) {
  if (free_.empty() && key_of_.size() >= most_records_) return false;
  if (free_.empty()) {
    free_.push_back({key_of_.size()});
    key_of_.emplace_back();
  }
  const SampleId number = free_.back();
  if (!policy_->admit(number, bytes, now, next_use, dropped_)) return false;
  free_.pop_back();
  key_of_[number.value] = key;
  number_of_.emplace(key, number);
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
                                std::vector<RecordKey>& drop) {
  policy_->set_capacity(bytes, dropped_);
  take_back(drop);
}

void RecordPolicy::take_back(std::vector<RecordKey>& drop) {
  for (const SampleId number : dropped_) {
    const RecordKey key = key_of_[number.value];
    drop.push_back(key);
    number_of_.erase(key);
    free_.push_back(number);
  }
  dropped_.clear();
}

}  // namespace leat
