#include "leat/cache/tier_plan.h"

#include <algorithm>
#include <utility>

namespace leat {
namespace {

/// A later run may well read it again: the last use of all, but a use. A record
/// with this as its own next use is a copy.
constexpr AccessTime kLaterRun = kNever - 1;

}  // namespace

std::optional<std::size_t> TierPlan::level_of(const RecordKey& key) const {
  for (std::size_t i = 0; i < tiers_.size(); ++i) {
    if (holds(i, key)) return i;
  }
  return std::nullopt;
}

std::optional<AccessTime> TierPlan::next_use_of(const RecordKey& key) const {
  for (const Tier& tier : tiers_) {
    const PlannedRecord* record = tier.policy->find(key);
    if (record != nullptr && record->next_use != kLaterRun) {
      return record->next_use;
    }
  }
  return std::nullopt;
}

AccessTime TierPlan::next_use(std::size_t level, AccessTime next) const {
  return tiers_[level].is_lasting ? std::min(next, kLaterRun) : next;
}

bool TierPlan::admit(std::size_t level, const PlannedRecord& record,
                     Dropped& dropped) {
  return tiers_[level].policy->admit(record, now_,
                                     next_use(level, record.next_use), dropped);
}

void TierPlan::reuse(std::size_t level, const PlannedRecord& record,
                     Dropped& dropped) {
  tiers_[level].policy->used(record, now_, next_use(level, record.next_use),
                             dropped);
}

std::optional<std::size_t> TierPlan::place(const PlannedRecord& record,
                                           std::size_t first, std::size_t end,
                                           Dropped& dropped) {
  for (std::size_t i = first; i < end; ++i) {
    if (!takes(i, record)) continue;
    if (holds(i, record.key)) {  // A copy, which becomes the record itself.
      reuse(i, record, dropped);
      return i;
    }
    if (admit(i, record, dropped)) return i;
  }
  return std::nullopt;
}

void TierPlan::pass_down(std::size_t level, const Dropped& dropped,
                         std::vector<TierStep>& steps) {
  for (const PlannedRecord& record : dropped) {
    TierStep step{
        .level = level, .key = record.key, .length_bytes = record.length_bytes};
    if (record.next_use == kLaterRun) {  // Its record is above, and stays.
      step.what = TierStep::What::kDropCopy;
      steps.push_back(step);
      continue;
    }
    Dropped next;
    if (const auto to = place(record, level + 1, tiers_.size(), next)) {
      pass_down(*to, next, steps);
      step.what = TierStep::What::kMove;
      step.to = *to;
    }
    steps.push_back(step);
  }
}

void TierPlan::copy_below(std::size_t level, const PlannedRecord& record,
                          std::vector<TierStep>& steps) {
  PlannedRecord copy = record;
  copy.next_use = kLaterRun;
  for (std::size_t i = level + 1; i < tiers_.size(); ++i) {
    if (!tiers_[i].keeps_copies || !takes(i, copy)) continue;
    Dropped dropped;
    if (holds(i, copy.key)) {
      reuse(i, copy, dropped);
    } else if (admit(i, copy, dropped)) {
      pass_down(i, dropped, steps);
      steps.push_back({.what = TierStep::What::kPut, .level = i});
    }
  }
}

/// A record that a faster tier takes over stays here as a copy, or goes.
void TierPlan::leave_copy(std::size_t level, PlannedRecord record,
                          bool is_known, std::vector<TierStep>& steps) {
  record.next_use = kLaterRun;
  Dropped dropped;
  if (tiers_[level].keeps_copies && is_known) {
    reuse(level, record, dropped);
  } else if (!tiers_[level].keeps_copies || !admit(level, record, dropped)) {
    lost(level, record.key);
    steps.push_back({.level = level, .key = record.key});
  }
  pass_down(level, dropped, steps);
}

void TierPlan::fetched(const PlannedRecord& record, AccessTime now,
                       std::vector<TierStep>& steps) {
  now_ = now;
  Dropped dropped;
  if (const auto held = level_of(record.key)) {  // Another read came first.
    reuse(*held, record, dropped);
    return pass_down(*held, dropped, steps);
  }
  const auto level = place(record, 0, tiers_.size(), dropped);
  if (!level) return;
  pass_down(*level, dropped, steps);
  steps.push_back({.what = TierStep::What::kPut, .level = *level});
  copy_below(*level, record, steps);
}

void TierPlan::used(std::size_t level, const PlannedRecord& record,
                    AccessTime now, bool may_rise, bool is_ours,
                    std::vector<TierStep>& steps) {
  now_ = now;
  Dropped dropped;
  const auto to = may_rise ? place(record, 0, level, dropped) : std::nullopt;
  const bool is_known = holds(level, record.key);
  if (to) {
    // First, to make room for what goes down.
    if (is_known || is_ours) leave_copy(level, record, is_known, steps);
    pass_down(*to, dropped, steps);
    steps.push_back({.what = TierStep::What::kPut, .level = *to});
    return;
  }
  if (is_known) {
    reuse(level, record, dropped);
  } else if (is_ours && !admit(level, record, dropped)) {
    steps.push_back({.level = level, .key = record.key});
  }
  pass_down(level, dropped, steps);
}

void TierPlan::forget(const RecordKey& key, std::vector<TierStep>& steps) {
  for (std::size_t i = 0; i < tiers_.size(); ++i) {
    if (!holds(i, key)) continue;
    lost(i, key);
    steps.push_back({.level = i, .key = key});
  }
}

void TierPlan::begin_anew(
    AccessTime now,
    const std::function<AccessTime(const PlannedRecord&)>& next_use_of,
    std::vector<TierStep>& steps) {
  now_ = now;
  // The slowest tier first: a record that comes down to it is weighed by its
  // new times.
  for (std::size_t level = tiers_.size(); level-- > 0;) {
    RecordPolicy& policy = *tiers_[level].policy;
    if (!policy.kind().goes_by_next_use) continue;
    Dropped dropped;
    for (const RecordKey& key : policy.keys()) {
      PlannedRecord record = *policy.find(key);
      if (record.next_use == kLaterRun) continue;  // A copy remains a copy.
      record.next_use = next_use_of(record);
      reuse(level, record, dropped);
    }
    pass_down(level, dropped, steps);
  }
}

void TierPlan::set_capacity(std::size_t level, std::uint64_t bytes,
                            std::vector<TierStep>& steps) {
  Dropped dropped;
  tiers_[level].policy->set_capacity(bytes, dropped);
  pass_down(level, dropped, steps);
}

}  // namespace leat
