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

/// A tier and the policy that says what it keeps.
struct CacheTier {
  CacheLevel level = CacheLevel::kRam;
  std::unique_ptr<SegmentTier> tier;
  /// By record_cost(); its capacity is the limit of the tier.
  std::unique_ptr<RecordPolicy> policy;
  /// Outlives this process. An object without an ETag may change in between,
  /// and is not kept there. See TierPlan::Tier, which has these two.
  bool is_lasting = false;
  bool keeps_copies = false;
};

/// Takes the policies out of `tiers`.
std::vector<TierPlan::Tier> take_policies(std::vector<CacheTier>& tiers);

/// The limit of all of them, which act as one, and of all writers.
std::uint64_t limit_of(const std::vector<CacheTier>& tiers);

/// Sees what others have written; with `has_new_files`, in new files too.
void see_files(const std::vector<CacheTier>& tiers, bool has_new_files);

/// Finds records: in the tiers, or on their way there.
///
/// Threads:  any.
/// Lifetime: all that it is given outlives it.
class RecordLookup {
 public:
  RecordLookup(const std::vector<CacheTier>& tiers, const WriteQueue& queue,
               CacheDecisions& decisions)
      : tiers_(tiers), queue_(queue), decisions_(decisions) {}

  /// True if read() is worth a try. No I/O.
  bool may_have(const RecordKey& key) const;
  /// The length of a record, if it is known. No I/O.
  std::optional<std::uint64_t> length_of(const RecordKey& key) const;

  /// Fills `into` with what waits to be written. False: it does not.
  bool copy_queued(const RecordKey& key, std::span<std::byte> into) const;
  /// Fills `into` from the first tier that has it, and says which; what none
  /// has is lost to their policies. Blocks for a read of a file.
  std::optional<std::size_t> read(const RecordKey& key,
                                  std::span<std::byte> into);

 private:
  const std::vector<CacheTier>& tiers_;
  const WriteQueue& queue_;
  CacheDecisions& decisions_;
};

}  // namespace leat
