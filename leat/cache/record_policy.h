// A CachePolicy that goes by records instead of samples.
#pragma once
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "leat/cache/record_key.h"
#include "leat/plan/cache_policy.h"

namespace leat {

/// Gives each record that is held a number of its own, and takes it back when
/// the record goes: a sample may have several records, and a record several
/// samples.
///
/// Threads: one at a time.
class RecordPolicy {
 public:
  /// `most_records` is the number of samples that `policy` was made for: beyond
  /// it nothing is admitted.
  RecordPolicy(std::unique_ptr<CachePolicy> policy, std::uint64_t most_records)
      : policy_(std::move(policy)), most_records_(most_records) {}

  bool holds(const RecordKey& key) const { return number_of_.contains(key); }
  /// The rest as CachePolicy says. `drop` is appended to.
  /// REQUIRES: holds(key).
  void used(const RecordKey& key, AccessTime now, AccessTime next_use,
            std::vector<RecordKey>& drop);
  /// REQUIRES: !holds(key).
  bool admit(const RecordKey& key, std::uint64_t bytes, AccessTime now,
             AccessTime next_use, std::vector<RecordKey>& drop);
  void lost(const RecordKey& key);
  void set_capacity(std::uint64_t bytes, std::vector<RecordKey>& drop);

 private:
  void take_back(std::vector<RecordKey>& drop);

  const std::unique_ptr<CachePolicy> policy_;
  const std::uint64_t most_records_;
  std::unordered_map<RecordKey, SampleId, RecordKeyHash> number_of_;
  std::vector<RecordKey> key_of_;
  std::vector<SampleId> free_;
  std::vector<SampleId> dropped_;  // Of the running call.
};

}  // namespace leat
