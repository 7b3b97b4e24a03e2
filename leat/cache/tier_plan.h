// The plan for all tiers of a cache, whose policies act as
// one.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "leat/cache/record_policy.h"

namespace leat {

/// One action for the tiers to perform.
struct TierStep {
  enum class What : std::uint8_t {
    kPut,       ///< Write the record that was read.
    kDrop,      ///< Free `key`, unless it was taken again.
    kDropCopy,  ///< Free `key` here: if it returns, a later step writes
                ///< it.
    kMove,      ///< Copy `key` to the tier `to`, then free it here.
  };
  What what = What::kDrop;
  std::size_t level = 0;  ///< The tier, from the fastest down.
  std::size_t to = 0;
  RecordKey key = {};  ///< Not of kPut.
  std::uint32_t length_bytes = 0;
};

/// Like plan/tier_stack.h, but for records: a record is in one tier, the
/// fastest that accepts it; a dropped record is offered to the next tier down;
/// a record in a slower tier is offered to the faster ones when it is read.
///
/// A tier that keeps copies keeps those of records in faster tiers while
/// nothing else needs the room: they cost no hit, save the way down, and serve
/// a later run.
///
/// Threads: one at a time.
class TierPlan {
 public:
  struct Tier {
    std::unique_ptr<RecordPolicy> policy;
    /// The tier outlives this run: it takes only records that may last, and
    /// keeps those that this run does not need again, to be dropped first.
    bool is_lasting = false;
    /// REQUIRES: is_lasting, and a policy that uses the next use.
    bool keeps_copies = false;
  };
  explicit TierPlan(std::vector<Tier> tiers) : tiers_(std::move(tiers)) {}

  bool holds(std::size_t level, const RecordKey& key) const {
    return tiers_[level].policy->holds(key);
  }
  /// The fastest tier that holds it, or will.
  std::optional<std::size_t> level_of(const RecordKey& key) const;

  /// The next use of a record, as last reported; nullopt for one that is held
  /// only as a copy.
  std::optional<AccessTime> next_use_of(const RecordKey& key) const;

  /// The record came from the store; if it is already held, this counts as a
  /// use. Appends to `steps`, here and below; they must be done in that order.
  void fetched(const PlannedRecord& record, AccessTime now,
               std::vector<TierStep>& steps);

  /// The record was read from tier `level`. With `may_rise` a faster tier may
  /// take it, which is a kPut. `is_ours`: if no policy knew the record, because
  /// an earlier run has left it, we may free it.
  void used(std::size_t level, const PlannedRecord& record, AccessTime now,
            bool may_rise, bool is_ours, std::vector<TierStep>& steps);

  /// The tier no longer has the record.
  void lost(std::size_t level, const RecordKey& key) {
    tiers_[level].policy->lost(key);
  }

  /// The record will never be read again.
  void forget(const RecordKey& key, std::vector<TierStep>& steps);

  /// The order of reads changes from `now` on: `next_use_of` gives the next
  /// read of each record. Nothing moves up; a record that a policy then drops
  /// moves down, or is freed.
  void begin_anew(
      AccessTime now,
      const std::function<AccessTime(const PlannedRecord&)>& next_use_of,
      std::vector<TierStep>& steps);

  /// In units of record_cost().
  void set_capacity(std::size_t level, std::uint64_t bytes,
                    std::vector<TierStep>& steps);

 private:
  using Dropped = std::vector<PlannedRecord>;

  bool takes(std::size_t level, const PlannedRecord& record) const {
    return record.may_last || !tiers_[level].is_lasting;
  }
  AccessTime next_use(std::size_t level, AccessTime next) const;
  bool admit(std::size_t level, const PlannedRecord& record, Dropped& dropped);
  void reuse(std::size_t level, const PlannedRecord& record, Dropped& dropped);
  /// The first tier in [first, end) that takes the record, or none.
  std::optional<std::size_t> place(const PlannedRecord& record,
                                   std::size_t first, std::size_t end,
                                   Dropped& dropped);
  void pass_down(std::size_t level, const Dropped& dropped,
                 std::vector<TierStep>& steps);
  void leave_copy(std::size_t level, PlannedRecord record, bool is_known,
                  std::vector<TierStep>& steps);
  void copy_below(std::size_t level, const PlannedRecord& record,
                  std::vector<TierStep>& steps);

  std::vector<Tier> tiers_;
  AccessTime now_ = 0;  // The time of the latest call.
};

}  // namespace leat
