#include "leat/cache/cache_decisions.h"

#include <algorithm>
#include <utility>

namespace leat {

CacheDecisions::CacheDecisions(std::vector<TierPlan::Tier> tiers,
                               const JobUses& uses)
    : uses_(uses),
      levels_(tiers.size()),
      plan_(std::move(tiers)),
      allowed_(levels_, kNotTold) {}

std::optional<std::size_t> CacheDecisions::level_of(
    const RecordKey& key) const {
  const MutexLock lock(mutex_);
  return plan_.level_of(key);
}

bool CacheDecisions::holds(std::size_t level, const RecordKey& key) const {
  const MutexLock lock(mutex_);
  return plan_.holds(level, key);
}

std::optional<std::size_t> CacheDecisions::level_from(
    std::size_t level, const RecordKey& key) const {
  const MutexLock lock(mutex_);
  while (level < levels_ && !plan_.holds(level, key)) ++level;
  if (level == levels_) return std::nullopt;
  return level;
}

void CacheDecisions::lost(std::size_t level, const RecordKey& key) {
  const MutexLock lock(mutex_);
  plan_.lost(level, key);
}

void CacheDecisions::lost(const RecordKey& key) {
  const MutexLock lock(mutex_);
  for (std::size_t i = 0; i < levels_; ++i) plan_.lost(i, key);
}

CacheWrite CacheDecisions::used(std::size_t level, const CacheUse& use,
                                bool may_rise, SegmentTier& tier) {
  CacheWrite write{.now = use.hint.now, .key = use.key};
  const MutexLock lock(mutex_);
  const bool is_ours = !plan_.holds(level, use.key) && tier.claim(use.key);
  const PlannedRecord own = uses_.planned(use);
  PlannedRecord record = own;
  record.next_use = uses_.of_any(use, own);
  plan_.used(level, record, write.now, may_rise, is_ours, write.steps);
  share(use, own, record.next_use);
  return write;
}

CacheWrite CacheDecisions::fetched(const CacheUse& use, AccessTime asked) {
  CacheWrite write{.now = use.hint.now, .key = use.key};
  const MutexLock lock(mutex_);
  PlannedRecord own = uses_.planned(use);
  const bool is_late = look_past_asked(use.instead_of, asked, own);
  PlannedRecord record = own;
  record.next_use = uses_.of_any(use, own);
  // A later read has already reported its use, or will.
  if (!is_late || !plan_.level_of(use.key)) {
    plan_.fetched(record, write.now, write.steps);
  }
  if (use.instead_of && plan_.level_of(use.key)) {
    plan_.forget(*use.instead_of, write.steps);
  }
  share(use, own, record.next_use);
  return write;
}

std::optional<CacheWrite> CacheDecisions::sent(const CacheUse& use) {
  CacheWrite write{.now = use.hint.now};
  {
    const MutexLock lock(mutex_);
    if (plan_.level_of(use.key)) return std::nullopt;
    plan_.fetched(uses_.planned(use), write.now, write.steps);
  }
  // The records that it displaces go now; it is written once it is here.
  std::erase_if(write.steps, [](const TierStep& step) {
    return step.what == TierStep::What::kPut;
  });
  return write;
}

CacheWrite CacheDecisions::came(const CacheUse& use) {
  CacheWrite write{.now = use.hint.now, .key = use.key};
  const MutexLock lock(mutex_);
  for (std::size_t i = 0; i < levels_; ++i) {
    if (!plan_.holds(i, use.key)) continue;
    write.steps.push_back({.what = TierStep::What::kPut, .level = i});
  }
  const PlannedRecord own = uses_.planned(use);
  share(use, own, uses_.of_any(use, own));
  return write;
}

CacheWrite CacheDecisions::forget(const RecordKey& key) {
  CacheWrite write{.key = key};
  const MutexLock lock(mutex_);
  plan_.forget(key, write.steps);
  return write;
}

CacheWrite CacheDecisions::set_capacity(std::size_t level,
                                        std::uint64_t bytes) {
  CacheWrite write;
  const MutexLock lock(mutex_);
  plan_.set_capacity(level, bytes, write.steps);
  return write;
}

std::optional<CacheWrite> CacheDecisions::allow(std::size_t level,
                                                std::uint64_t bytes) {
  CacheWrite write;
  const MutexLock lock(mutex_);
  if (std::exchange(allowed_[level], bytes) == bytes) return std::nullopt;
  plan_.set_capacity(level, bytes, write.steps);
  write.now = latest_;
  return write;
}

void CacheDecisions::forget_allowance(std::size_t level) {
  const MutexLock lock(mutex_);
  allowed_[level] = kNotTold;
}

CacheWrite CacheDecisions::begin_plan(
    AccessTime now, const std::function<AccessTime(SampleId)>& next_use_of) {
  const auto own_next_use_of = [&](const PlannedRecord& record) {
    return record.sample == PlannedRecord::kNoSample
               ? now
               : next_use_of(record.sample);
  };
  CacheWrite write{.now = now};
  const MutexLock lock(mutex_);
  latest_ = now;
  plan_.begin_anew(
      now,
      [&](const PlannedRecord& record) {
        if (record.next_use == JobUses::kAlways) return record.next_use;
        const AccessTime own = uses_.of_this_job(own_next_use_of(record));
        if (record.sample == PlannedRecord::kNoSample) return own;
        return uses_.of_any(own, record.sample.value, now);
      },
      write.steps);
  for (auto& [key, held] : shared_) {
    held.record.next_use = uses_.of_this_job(own_next_use_of(held.record));
    held.told = uses_.of_any(held.record.next_use, held.sample, now);
  }
  return write;
}

CacheWrite CacheDecisions::follow_jobs() {
  constexpr AccessTime kLittle = 32;
  CacheWrite write;
  const MutexLock lock(mutex_);
  write.now = latest_;
  for (auto at = shared_.begin(); at != shared_.end();) {
    Shared& it = at->second;
    const auto level = plan_.level_of(at->first);
    if (!level) {
      at = shared_.erase(at);
      continue;
    }
    ++at;
    PlannedRecord record = it.record;
    look_past_asked(std::nullopt, latest_, record);
    record.next_use = uses_.of_any(record.next_use, it.sample, latest_);
    const AccessTime change = record.next_use > it.told
                                  ? record.next_use - it.told
                                  : it.told - record.next_use;
    if (change <= kLittle) continue;
    it.told = record.next_use;
    plan_.used(*level, record, latest_, /*may_rise=*/false,
               /*is_ours=*/false, write.steps);
  }
  return write;
}

// Looks for a use that nobody has asked for yet. True if that is not the
// reported use, because the reported one has been asked for. Fetching and
// making take a while, in which the next epoch may have come to the same
// sample. That read found nothing, so that use is over. The use after it was
// reported with the record of the bytes, if there is one; otherwise it is
// assumed to be an epoch later.
bool CacheDecisions::look_past_asked(const std::optional<RecordKey>& instead_of,
                                     AccessTime asked,
                                     PlannedRecord& record) const {
  if (record.next_use == JobUses::kAlways || record.next_use > asked) {
    return false;
  }
  if (instead_of) {
    const auto told = plan_.next_use_of(*instead_of);
    if (told && *told > asked) {
      record.next_use = *told;
      return true;
    }
  }
  const AccessTime epochs = (asked - record.next_use) / uses_.epoch_time() + 1;
  record.next_use += epochs * uses_.epoch_time();
  return true;
}

void CacheDecisions::share(const CacheUse& use, const PlannedRecord& own,
                           AccessTime any) {
  latest_ = std::max(latest_, use.hint.now);
  if (!uses_.has_board() || own.next_use == JobUses::kAlways) return;
  if (!use.hint.sample || !plan_.level_of(use.key)) return;
  shared_.insert_or_assign(
      use.key, Shared{.record = own, .sample = *use.hint.sample, .told = any});
}

}  // namespace leat
