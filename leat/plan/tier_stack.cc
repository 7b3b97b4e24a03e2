#include "leat/plan/tier_stack.h"

#include <utility>

namespace leat {

TierStack::TierStack(std::vector<std::unique_ptr<CachePolicy>> tiers,
                     std::optional<NextUse> next_use,
                     const std::vector<std::uint64_t>& sizes, bool holds_blocks)
    : tiers_(std::move(tiers)),
      next_use_(std::move(next_use)),
      sizes_(sizes),
      holds_blocks_(holds_blocks) {}

std::size_t TierStack::read(SampleId sample, std::uint64_t epoch,
                            std::uint64_t position,
                            std::optional<AccessTime> told) {
  reading_ = sample;
  told_ = told;
  epoch_ = epoch;
  position_ = position;
  now_ = next_use_.has_value() ? next_use_->time_of(epoch, position) : 0;
  for (std::size_t i = 0; i < tiers_.size(); ++i) {
    if (!tiers_[i]->holds(sample)) continue;
    if (!rise(sample, i)) {
      drop_.clear();
      tiers_[i]->used(sample, now_, next_use_of(sample), drop_);
      offer_dropped(i + 1);
    }
    return i;
  }
  offer(sample, 0);
  return kMiss;
}

bool TierStack::rise(SampleId sample, std::size_t from) {
  const std::uint64_t bytes =
      sizes_.size() == 1 ? sizes_.front() : sizes_[sample.value];
  const AccessTime next_use = next_use_of(sample);
  for (std::size_t i = 0; i < from; ++i) {
    drop_.clear();
    if (!tiers_[i]->admit(sample, bytes, now_, next_use, drop_)) continue;
    tiers_[from]->lost(sample);  // First: that makes room for what goes down.
    offer_dropped(i + 1);
    return true;
  }
  return false;
}

void TierStack::set_capacity(std::size_t index, std::uint64_t capacity) {
  drop_.clear();
  tiers_[index]->set_capacity(capacity, drop_);
  offer_dropped(index + 1);
}

bool TierStack::holds(SampleId sample) const {
  for (const auto& tier : tiers_) {
    if (tier->holds(sample)) return true;
  }
  return false;
}

AccessTime TierStack::next_use_of(SampleId sample) {
  if (told_ && sample == reading_) return *told_;
  if (!next_use_.has_value()) return kNever;
  if (!holds_blocks_) {
    return next_use_->at_or_after(sample, epoch_, position_ + 1);
  }
  // A window that has begun has read its blocks, as near as makes no matter.
  const std::uint64_t block = sample.value;
  const AccessTime next =
      next_use_->block_at_or_after(block, epoch_, position_ + 1);
  const bool has_begun = next == next_use_->time_of(epoch_, position_ + 1);
  if (sample != reading_ && !has_begun) return next;
  return next_use_->block_at_or_after(block, epoch_, Steps::kMax);
}

bool TierStack::offer(SampleId sample, std::size_t first_tier) {
  if (first_tier >= tiers_.size()) return false;
  const std::uint64_t bytes =
      sizes_.size() == 1 ? sizes_.front() : sizes_[sample.value];
  const AccessTime next_use = next_use_of(sample);
  for (std::size_t i = first_tier; i < tiers_.size(); ++i) {
    drop_.clear();
    if (!tiers_[i]->admit(sample, bytes, now_, next_use, drop_)) continue;
    offer_dropped(i + 1);
    return true;
  }
  return false;
}

void TierStack::offer_dropped(std::size_t first_tier) {
  if (drop_.empty() || first_tier >= tiers_.size()) return;
  const std::vector<SampleId> dropped = std::exchange(drop_, {});
  for (const SampleId sample : dropped) offer(sample, first_tier);
}

}  // namespace leat
