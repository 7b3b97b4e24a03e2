#include "leat/cache/cache_tiers.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace leat {

std::vector<TierPlan::Tier> take_policies(std::vector<CacheTier>& tiers) {
  std::vector<TierPlan::Tier> planned;
  planned.reserve(tiers.size());
  for (CacheTier& tier : tiers) {
    planned.push_back({.policy = std::move(tier.policy),
                       .is_lasting = tier.is_lasting,
                       .keeps_copies = tier.keeps_copies});
  }
  return planned;
}

std::uint64_t limit_of(const std::vector<CacheTier>& tiers) {
  std::uint64_t bytes = 0;
  for (const CacheTier& tier : tiers) {
    bytes += tier.tier->options().limit_bytes;
  }
  return bytes;
}

void see_files(const std::vector<CacheTier>& tiers, bool has_new_files) {
  for (const CacheTier& tier : tiers) {
    if (has_new_files) {
      tier.tier->refresh();
    } else {
      tier.tier->catch_up();
    }
  }
}

bool RecordLookup::may_have(const RecordKey& key) const {
  if (queue_.find(key) != nullptr) return true;
  return std::ranges::any_of(
      tiers_, [&](const CacheTier& tier) { return tier.tier->may_hold(key); });
}

std::optional<std::uint64_t> RecordLookup::length_of(
    const RecordKey& key) const {
  if (const BufferRef queued = queue_.find(key)) return queued->size();
  for (const CacheTier& tier : tiers_) {
    if (const auto bytes = tier.tier->length_of(key)) return bytes;
  }
  return std::nullopt;
}

bool RecordLookup::copy_queued(const RecordKey& key,
                               std::span<std::byte> into) const {
  const BufferRef bytes = queue_.find(key);
  if (bytes == nullptr || bytes->size() != into.size()) return false;
  std::memcpy(into.data(), bytes->data(), bytes->size());
  return true;
}

std::optional<std::size_t> RecordLookup::read(const RecordKey& key,
                                              std::span<std::byte> into) {
  for (std::size_t i = 0; i < tiers_.size(); ++i) {
    if (!tiers_[i].tier->may_hold(key)) continue;
    if (tiers_[i].tier->read(key, into)) return i;
    if (tiers_[i].tier->holds(key)) continue;  // Still there, not lost.
    decisions_.lost(i, key);
  }
  return std::nullopt;
}

}  // namespace leat
