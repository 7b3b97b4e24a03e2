// The tiers of one cache, from the fastest down.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "leat/cache/cache_decisions.h"
#include "leat/cache/record_policy.h"
#include "leat/cache/segment_tier.h"
#include "leat/cache/tier_plan.h"
#include "leat/cache/write_queue.h"

namespace leat {

/// A tier and the policy that decides what it keeps.
struct CacheTier {
  CacheLevel level = CacheLevel::kRam;
  std::unique_ptr<SegmentTier> tier;
  /// In units of record_cost(); its capacity is the limit of the tier.
  std::unique_ptr<RecordPolicy> policy;
  /// The tier outlives this process. An object without an ETag may change in
  /// between, so it is not kept there. See TierPlan::Tier, which has both.
  bool is_lasting = false;
  bool keeps_copies = false;
};

/// Moves the policies out of `tiers`.
std::vector<TierPlan::Tier> take_policies(std::vector<CacheTier>& tiers);

/// The limit of all tiers, which act as one, and of all writers.
std::uint64_t limit_of(const std::vector<CacheTier>& tiers);

/// Picks up what others have written; with `has_new_files`, in new files too.
void see_files(const std::vector<CacheTier>& tiers, bool has_new_files);

/// Finds records that are in the tiers or on their way there.
///
/// Threads: any. Lifetime: everything passed to it must outlive
/// it.
class RecordLookup {
 public:
  RecordLookup(const std::vector<CacheTier>& tiers, const WriteQueue& queue,
               CacheDecisions& decisions)
      : tiers_(tiers), queue_(queue), decisions_(decisions) {}

  /// True if read() may find it. No I/O.
  bool may_have(const RecordKey& key) const;
  /// The length of a record, if known. No I/O.
  std::optional<std::uint64_t> length_of(const RecordKey& key) const;

  /// Fills `into` from the queue of records to write. False: it is not in it.
  bool copy_queued(const RecordKey& key, std::span<std::byte> into) const;
  /// Fills `into` from the first tier that has the record, and returns which.
  /// If none has it, the policies forget it. Blocks for a file read.
  std::optional<std::size_t> read(const RecordKey& key,
                                  std::span<std::byte> into);

 private:
  const std::vector<CacheTier>& tiers_;
  const WriteQueue& queue_;
  CacheDecisions& decisions_;
};

}  // namespace leat
