// The plan of the tiers of one cache: the policies of all of them, asked as
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

/// One thing for the tiers to do.
struct TierStep {
  enum class What : std::uint8_t {
    kPut,       ///< Write the record that was read.
    kDrop,      ///< Free `key`, unless it was taken again meanwhile.
    kDropCopy,  ///< Free `key` here: a later step writes it, if it is to
                ///< return.
    kMove,      ///< Copy `key` to the tier `to`, then free it here.
  };
  What what = What::kDrop;
  std::size_t level = 0;  ///< The tier, from the fastest down.
  std::size_t to = 0;
  RecordKey key = {};  ///< Not of kPut.
  std::uint32_t length_bytes = 0;
};

/// As plan/tier_stack.h, for records: a record is in one tier, the fastest that
/// takes it; a record that one drops is offered to the next; a record in a
/// slower one is offered to the faster ones when it is read.
///
/// A tier that keeps copies keeps those of records in a faster one, for as long
/// as nothing else wants the room: they cost no hit, they save the way down,
/// and a later run finds them.
///
/// Threads: one at a time.
class TierPlan {
 public:
  struct Tier {
    std::unique_ptr<RecordPolicy> policy;
    /// Outlives this run: takes what may last alone, and keeps what this run
    /// does not want again, as what goes first.
    bool is_lasting = false;
    /// REQUIRES: is_lasting, and a policy that goes by the next use.
    bool keeps_copies = false;
  };
  explicit TierPlan(std::vector<Tier> tiers) : tiers_(std::move(tiers)) {}

  bool holds(std::size_t level, const RecordKey& key) const {
    return tiers_[level].policy->holds(key);
  }
  /// The fastest tier that holds it, or is to.
  std::optional<std::size_t> level_of(const RecordKey& key) const;

  /// The next use of a record, as it was told last; nullopt for one that is
  /// held as a copy alone.
  std::optional<AccessTime> next_use_of(const RecordKey& key) const;

  /// It came from the store; if it is held already, that is a use of it.
  /// `steps` is appended to, here and below; they are to be done in that order.
  void fetched(const PlannedRecord& record, AccessTime now,
               std::vector<TierStep>& steps);

  /// It was read from tier `level`. With `may_rise` a faster one may take it:
  /// that is a kPut. `is_ours`: if no policy knew of it, because an earlier run
  /// has left it, it is ours to free.
  void used(std::size_t level, const PlannedRecord& record, AccessTime now,
            bool may_rise, bool is_ours, std::vector<TierStep>& steps);

  /// The tier no longer has it.
  void lost(std::size_t level, const RecordKey& key) {
    tiers_[level].policy->lost(key);
  }

  /// Nobody will read it again.
  void forget(const RecordKey& key, std::vector<TierStep>& steps);

  /// The order of reads changes from `now` on: `next_use_of` tells the next
  /// read of each record. Nothing moves up; a record that a policy then drops
  /// goes down, or away.
  void begin_anew(
      AccessTime now,
      const std::function<AccessTime(const PlannedRecord&)>& next_use_of,
      std::vector<TierStep>& steps);

  /// By record_cost().
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
  /// The first of the tiers [first, end) that takes it, or none.
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
