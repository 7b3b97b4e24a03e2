// The part of CachedStore that jobs share tiers by.
//
// What another job has yet to read in its running epoch counts as wanted next,
// whatever this one knows of it: so it goes last, and makes no room for what
// nobody waits for. Once all have read it, its own next use counts again.

#include <algorithm>
#include <utility>

#include "leat/cache/cached_store.h"

namespace leat {

std::unique_ptr<FetchTurns> CachedStore::make_turns() {
  if (sharing_with_.claims == nullptr) return nullptr;
  sharing_with_.claims->announce();  // The tiers have files from the start.
  if (sharing_with_.board != nullptr) sharing_with_.board->look();
  return std::make_unique<FetchTurns>(
      std::move(sharing_with_.claims),
      SharedTiers{
          .see_others =
              [this](bool has_new_files) { see_files(has_new_files); },
          .is_there =
              [this](const RecordKey& key) { return is_somewhere(key); }},
      FetchTurns::Options{});
}

bool CachedStore::is_somewhere(const RecordKey& key) const {
  {
    const MutexLock lock(mutex_);
    if (unwritten_.contains(key)) return true;
  }
  return std::ranges::any_of(
      tiers_, [&](const CacheTier& tier) { return tier.tier->may_hold(key); });
}

void CachedStore::see_files(bool has_new_files) {
  for (CacheTier& tier : tiers_) {
    if (has_new_files) {
      tier.tier->refresh();
    } else {
      tier.tier->catch_up();
    }
  }
}

/// On the writing thread.
void CachedStore::see_others() {
  if (turns_ != nullptr) {
    turns_->see_others();
    follow_allowance();
  } else {
    see_files(/*has_new_files=*/false);
  }
  if (sharing_with_.board != nullptr) let_go_of_what_others_have_read();
}

bool CachedStore::others_want(const ReadHint& hint) const {
  return sharing_with_.board != nullptr && hint.sample &&
         sharing_with_.board->others_want({*hint.sample});
}

bool CachedStore::is_wanted_soon(const Use& use) const {
  return (sharing_with_.keeps_bytes && !use.is_made) || others_want(use.hint);
}

/// What this job never reads again another one may, in an epoch to come, or one
/// that begins later.
AccessTime CachedStore::own_next_use(const ReadHint& hint) const {
  constexpr AccessTime kAfterAllElse = kNever - 2;  // One less is a copy's.
  if (sharing_with_.board == nullptr || hint.next_use != kNever) {
    return hint.next_use;
  }
  return kAfterAllElse;
}

void CachedStore::hold_for_others(const Use& use) {
  latest_ = std::max(latest_, use.hint.now);
  if (sharing_with_.keeps_bytes && !use.is_made) return;
  if (!others_want(use.hint) || !plan_.level_of(use.key)) return;
  PlannedRecord record = planned(use);
  record.next_use = own_next_use(use.hint);
  for_others_.insert_or_assign(
      use.key, HeldForOthers{.record = record, .sample = *use.hint.sample});
}

void CachedStore::let_go_of_what_others_have_read() {
  sharing_with_.board->look();
  Write write;
  {
    const MutexLock lock(deciding_);
    write.now = latest_;
    std::erase_if(for_others_, [&](const auto& held) LEAT_REQUIRES(deciding_) {
      const HeldForOthers& it = held.second;
      if (sharing_with_.board->others_want({it.sample})) return false;
      if (const auto level = plan_.level_of(held.first)) {
        PlannedRecord record = it.record;
        look_past_asked({}, latest_, record);
        plan_.used(*level, record, latest_, /*may_rise=*/false,
                   /*is_ours=*/false, write.steps);
      }
      return true;
    });
  }
  do_steps(write);
}

/// Of a limit that several write, each may hold a part that changes as others
/// come and go: what is above it goes by the policy, instead of whatever comes
/// next being refused.
void CachedStore::follow_allowance() {
  Write write;
  {
    const MutexLock lock(deciding_);
    allowed_.resize(tiers_.size());
    for (std::size_t i = 0; i < tiers_.size(); ++i) {
      const std::uint64_t allowed = tiers_[i].tier->allowed_bytes();
      if (std::exchange(allowed_[i], allowed) == allowed) continue;
      plan_.set_capacity(i, allowed, write.steps);
    }
    write.now = latest_;
  }
  do_steps(write);
}

void CachedStore::end_turn_of(const RecordKey& key) {
  if (turns_ != nullptr) turns_->end(key);
}

void CachedStore::take_turn(const RecordId& id, std::stop_token stop,
                            std::function<void(bool)> decided) {
  if (turns_ == nullptr) return decided(false);
  turns_->ask(key_of(id), std::move(stop), std::move(decided));
}

void CachedStore::end_turn(const RecordId& id) { end_turn_of(key_of(id)); }

}  // namespace leat
