// Tiers before a store, driven one read at a time, to be compared with the
// simulation.
#pragma once
#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <latch>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "leat/base/units.h"
#include "leat/cache/cached_store.h"
#include "leat/plan/cache_policy_kind.h"
#include "leat/plan/holder_dealing.h"
#include "leat/plan/next_use.h"
#include "leat/plan/order.h"
#include "leat/plan/placement.h"
#include "leat/plan/simulator.h"
#include "leat/plan/tier_stack.h"
#include "leat/store/memory/memory_store.h"
#include "leat/store/testing/faulty_store.h"

namespace leat {

inline constexpr std::uint64_t kDrivenSamples = 240;
inline constexpr std::uint64_t kDrivenEpochs = 5;

/// One page to four, and mostly not whole ones.
inline std::uint64_t driven_length(SampleId id) {
  return 700 + mix64(id.value) % 13'000;
}
/// The bytes of all of them in a tier.
inline std::uint64_t driven_bytes() {
  std::uint64_t all = 0;
  for (std::uint64_t i = 0; i < kDrivenSamples; ++i) {
    all += record_cost(driven_length(SampleId{i}));
  }
  return all;
}

/// A tier of a job's node, of at most `limit` bytes.
struct DrivenTier {
  CacheLevel level = CacheLevel::kRam;
  std::uint64_t limit = 0;
};

/// One of `ranks`, each on a node of its own with these tiers.
struct DrivenJob {
  std::uint32_t ranks = 1;
  std::string policy;
  std::vector<DrivenTier> tiers;
  Locality locality = Locality::kNone;
  Placement placement = Placement::kAny;
  /// Reads of the store that are on their way while others are read; 0: each
  /// has come before the next is asked for.
  std::size_t late_reads = 0;

  /// The policy's window, if it has one: less than an epoch, and more than a
  /// step.
  AccessTime window() const {
    return has_policy_trait(policy, &CachePolicyKind::has_window)
               ? kDrivenSamples * 3 / 4
               : 0;
  }
  NextUseOptions reads() const;
  NextUse next_use() const;
  /// The samples that each of its tiers may hold; null: any.
  std::vector<std::function<bool(SampleId)>> planned() const;
  SimulationOptions simulation() const;
  /// The tiers that simulate() asks, to be asked read by read. `sizes` outlives
  /// it.
  TierStack stack(const std::vector<std::uint64_t>& sizes) const;
};

/// Drives the reads of rank 0.
class DrivenCache {
 public:
  /// Disks are folders in `folder`, which must be there.
  DrivenCache(DrivenJob job, const std::string& folder);
  ~DrivenCache();

  /// Calls `visit(sample, epoch, position)` for each read of an epoch.
  template <class Visit>
  void run_epoch(std::uint64_t epoch, const Visit& visit) {
    const EpochOrder order(kDrivenSamples, {}, nullptr, epoch);
    const Steps steps = *Steps::make({.samples = kDrivenSamples,
                                      .global_batch = kGlobalBatch,
                                      .rank = {0, job_.ranks}});
    for (std::uint64_t k = 0; k < steps.count(); ++k) {
      const StepSlice slice = steps.slice(k);
      for (std::uint64_t p = slice.begin; p < slice.end; ++p) {
        visit(order.at(p), epoch, p);
      }
    }
  }

  /// The tier that had it, or none; its bytes are checked. All that follows
  /// from it is decided and written when this returns.
  std::optional<CacheLevel> read(SampleId id, std::uint64_t epoch,
                                 std::uint64_t position);
  std::optional<CacheLevel> read_at(SampleId id, AccessTime now,
                                    AccessTime next_use);
  /// Like read(), but the store's answers come `late_reads` later: true if a
  /// tier had it, or another read was bringing it already.
  bool read_ahead(SampleId id, std::uint64_t epoch, std::uint64_t position);
  /// The reads of rank 0 that holders are dealt, in an epoch. REQUIRES: one
  /// tier, and a locality that deals to holders.
  template <class Visit>
  void run_dealt_epoch(std::uint64_t epoch, const Visit& visit) {
    EXPECT_TRUE(dealing_->seek(epoch, 0, {}));
    for (std::uint64_t k = 0; k < kDrivenSamples / kGlobalBatch; ++k) {
      for (const DealtSample& dealt : dealing_->next_step()) {
        if (dealt.rank != 0) continue;
        visit(dealt.sample, next_use_.time_of(epoch, dealt.position),
              dealt.next_use);
      }
    }
  }
  void set_share(CacheLevel level, std::optional<std::uint64_t> bytes) {
    store_->set_share(level, bytes);
    store_->drain();
  }
  std::int64_t metric(Metric which) const { return metrics_.value(which); }

  static constexpr std::uint64_t kGlobalBatch = 12;

 private:
  struct Late;
  void let_oldest_come();

  const DrivenJob job_;
  SystemFileOps ops_;
  FakeClock clock_;  // No disk is slow here.
  Metrics metrics_;
  std::vector<std::string> etags_;
  NextUse next_use_;
  std::unique_ptr<HolderDealing> dealing_;  ///< Null: nobody is dealt to.
  testing::HeldStore* held_ = nullptr;      ///< Null: no read is late.
  std::deque<std::unique_ptr<Late>> late_;
  std::unique_ptr<CachedStore> store_;
};

}  // namespace leat
