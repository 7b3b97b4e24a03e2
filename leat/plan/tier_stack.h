// The tiers of one cache, each with its policy, acting as one.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "leat/plan/cache_policy.h"
#include "leat/plan/next_use.h"

namespace leat {

/// Tiers from the fastest down; a sample is in at most one of them.
///
/// A read from the store is offered to the fastest tier first, and to the next
/// if that refuses. A sample that one tier drops is offered to the next. A read
/// from one tier is offered to the faster ones.
///
/// Threads: one at a time.
class TierStack {
 public:
  /// `next_use` tells when the ranks that share this cache read a sample again;
  /// none if no policy asks. `sizes`, the room of each in a tier, has one
  /// entry, or one a sample, and outlives this. With `holds_blocks`, blocks of
  /// `next_use` are read and held, each once an epoch.
  TierStack(std::vector<std::unique_ptr<CachePolicy>> tiers,
            std::optional<NextUse> next_use,
            const std::vector<std::uint64_t>& sizes, bool holds_blocks = false);

  /// The result if no tier holds the sample.
  static constexpr std::size_t kMiss = static_cast<std::size_t>(-1);

  /// A read at `position` of `epoch`, from the tier that is returned; a miss is
  /// offered to the tiers. `told` is the sample's next read, if the caller
  /// knows better than `next_use`.
  std::size_t read(SampleId sample, std::uint64_t epoch, std::uint64_t position,
                   std::optional<AccessTime> told = std::nullopt);

  /// From now on tier `index` holds at most this much, in its policy's unit;
  /// samples that it drops are offered to the next tier.
  void set_capacity(std::size_t index, std::uint64_t capacity);

  bool holds(SampleId sample) const;
  const CachePolicy& tier(std::size_t index) const { return *tiers_[index]; }

 private:
  AccessTime next_use_of(SampleId sample);
  bool rise(SampleId sample, std::size_t from);
  bool offer(SampleId sample, std::size_t first_tier);
  void offer_dropped(std::size_t first_tier);

  std::vector<std::unique_ptr<CachePolicy>> tiers_;
  std::optional<NextUse> next_use_;
  const std::vector<std::uint64_t>& sizes_;
  const bool holds_blocks_;
  std::vector<SampleId> drop_;  // The drops of the current policy.
  std::uint64_t epoch_ = 0;     // The running read: its epoch and its position.
  std::uint64_t position_ = 0;
  AccessTime now_ = 0;
  SampleId reading_;
  std::optional<AccessTime> told_;
};

}  // namespace leat
