// A CachePolicy that works on records instead of samples.
#pragma once
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "leat/base/result.h"
#include "leat/cache/record_key.h"
#include "leat/plan/cache_policy.h"
#include "leat/plan/cache_policy_kind.h"

namespace leat {

/// A record as policies see it.
struct PlannedRecord {
  static constexpr SampleId kNoSample{~std::uint64_t{0}};

  RecordKey key;
  AccessTime next_use = 0;
  std::uint32_t length_bytes = 0;
  bool may_last = true;  ///< It is useful to a later run, too.
  /// The sample that it is part of; kNoSample: several, or
  /// unknown.
  SampleId sample = kNoSample;
};

/// Gives each held record its own number, and takes it back when the
/// record goes: a sample may have several records, and a record several
/// samples.
///
/// Threads: one at a time.
class RecordPolicy {
 public:
  /// Makes a policy over `spec.samples` records instead of samples; further
  /// records are not admitted. `spec.planned` still refers to samples; a record
  /// without a known sample is not planned.
  ///
  /// Errors: as make_cache_policy
  static Result<std::unique_ptr<RecordPolicy>> make(CachePolicySpec spec);
  RecordPolicy(const RecordPolicy&) = delete;  // The policy asks this one.
  RecordPolicy& operator=(const RecordPolicy&) = delete;

  bool holds(const RecordKey& key) const { return number_of_.contains(key); }
  /// As last reported; null if it is not held. Valid until the next call.
  const PlannedRecord* find(const RecordKey& key) const {
    const auto found = number_of_.find(key);
    return found == number_of_.end() ? nullptr : &records_[found->second.value];
  }
  /// The keys of all held records, in no particular order.
  std::vector<RecordKey> keys() const;
  /// The traits that hold for it whatever it contains.
  const CachePolicyKind& kind() const { return kind_; }
  /// For the rest see CachePolicy; costs are by record_cost(). Appends to
  /// `drop`, with the next uses that `record`s were reported with; the policy
  /// itself uses `next_use`, which may differ. REQUIRES: holds(record.key).
  void used(const PlannedRecord& record, AccessTime now, AccessTime next_use,
            std::vector<PlannedRecord>& drop);
  /// REQUIRES: !holds(record.key).
  bool admit(const PlannedRecord& record, AccessTime now, AccessTime next_use,
             std::vector<PlannedRecord>& drop);
  void lost(const RecordKey& key);
  void set_capacity(std::uint64_t bytes, std::vector<PlannedRecord>& drop);

 private:
  RecordPolicy(const CachePolicySpec& spec, const CachePolicyKind& kind);
  void take_back(std::vector<PlannedRecord>& drop);

  std::unique_ptr<CachePolicy> policy_;
  const std::uint64_t most_records_;
  const CachePolicyKind& kind_;
  std::unordered_map<RecordKey, SampleId, RecordKeyHash> number_of_;
  std::vector<PlannedRecord> records_;  // By number.
  std::vector<SampleId> free_;
  std::vector<SampleId> dropped_;  // In the running call.
};

}  // namespace leat
