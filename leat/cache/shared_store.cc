// The part of CachedStore that jobs share tiers by.
//
// A record is used next when the first of all jobs reads it, each by its own
// order: they write on a board when that is. So what is held is what a policy
// would hold that saw one stream of reads, theirs all together.

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
  } else {
    see_files(/*has_new_files=*/false);
  }
  {
    const MutexLock lock(turn_);
    follow_allowance();
  }
  if (sharing_with_.board == nullptr) return;
  // All that is held is looked through: for a twentieth of the time at most.
  const TimePoint now = SteadyClock().now();
  if (now < follow_after_) return;
  {
    const MutexLock lock(turn_);
    follow_others();
  }
  const TimePoint end = SteadyClock().now();
  // Not for long after a moment in which we did not run.
  follow_after_ =
      end + std::min<Nanoseconds>(20 * (end - now), std::chrono::seconds(1));
}

/// Another job may read a record that this job never reads again, in an epoch
/// to come, or one that begins later.
AccessTime CachedStore::own_next_use(const Use& use) const {
  if (sharing_with_.keeps_bytes && !use.is_made) return kAlways;
  return plain_next_use(use.hint.next_use);
}

AccessTime CachedStore::plain_next_use(AccessTime told) const {
  constexpr AccessTime kAfterAllElse = kNever - 2;  // One less is a copy's.
  if (sharing_with_.board == nullptr || told != kNever) return told;
  return kAfterAllElse;
}

AccessTime CachedStore::next_use_of_any(const Use& use,
                                        const PlannedRecord& own) const {
  if (!use.hint.sample) return own.next_use;
  return next_use_of_any(own.next_use, *use.hint.sample, use.hint.now);
}

/// On our clock: jobs are assumed to go on as fast as this one. A record that
/// several want in their running epochs counts as used a little sooner, because
/// it serves more.
AccessTime CachedStore::next_use_of_any(AccessTime own, std::uint64_t sample,
                                        AccessTime now) const {
  constexpr std::uint64_t kTurnsAJob = 32;
  const JobBoard* const board = sharing_with_.board.get();
  if (board == nullptr || own == kAlways) return own;
  const auto wanted = board->wanted({sample});
  if (!wanted) return own;
  const std::size_t others = board->others();
  const std::uint64_t turns =
      now % options_.epoch_time + wanted->turns +
      kTurnsAJob * (others - std::min<std::size_t>(others, wanted->jobs));
  const std::uint64_t epochs = now / options_.epoch_time;
  const std::uint64_t samples = board->samples();
  return std::min(
      own, (epochs + turns / samples) * options_.epoch_time + turns % samples);
}

void CachedStore::hold_for_others(const Use& use, const PlannedRecord& own,
                                  AccessTime any) {
  latest_ = std::max(latest_, use.hint.now);
  if (sharing_with_.board == nullptr || own.next_use == kAlways) return;
  if (!use.hint.sample || !plan_.level_of(use.key)) return;
  for_others_.insert_or_assign(
      use.key,
      HeldForOthers{.record = own, .sample = *use.hint.sample, .told = any});
}

/// Others go on, and do not read again the samples that they have read: tells
/// the policy of each record held whose next use has changed by more than a
/// little.
void CachedStore::follow_others() {
  constexpr AccessTime kLittle = 32;
  sharing_with_.board->look();
  Write write;
  {
    const MutexLock lock(deciding_);
    write.now = latest_;
    for (auto at = for_others_.begin(); at != for_others_.end();) {
      HeldForOthers& it = at->second;
      const auto level = plan_.level_of(at->first);
      if (!level) {
        at = for_others_.erase(at);
        continue;
      }
      ++at;
      PlannedRecord record = it.record;
      look_past_asked({}, latest_, record);
      record.next_use = next_use_of_any(record.next_use, it.sample, latest_);
      const AccessTime change = record.next_use > it.told
                                    ? record.next_use - it.told
                                    : it.told - record.next_use;
      if (change <= kLittle) continue;
      it.told = record.next_use;
      plan_.used(*level, record, latest_, /*may_rise=*/false,
                 /*is_ours=*/false, write.steps);
    }
  }
  do_steps(write);
}

/// If several write to one limit, each may hold a part that changes as others
/// come and go. The policy drops the records above it, instead of refusing
/// every record that comes next.
void CachedStore::follow_allowance() {
  for (std::size_t i = 0; i < tiers_.size(); ++i) {
    const std::uint64_t allowed = tiers_[i].tier->allowed_bytes();
    Write write;
    {
      const MutexLock lock(deciding_);
      if (std::exchange(allowed_[i], allowed) == allowed) continue;
      plan_.set_capacity(i, allowed, write.steps);
      write.now = latest_;
    }
    if (write.steps.empty()) continue;
    do_steps(write);
    tiers_[i].tier->refresh();  // Those that wait for the room may have it now.
  }
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

bool CachedStore::is_coming(const RecordId& id) const {
  return turns_ != nullptr && turns_->is_others(key_of(id));
}

}  // namespace leat
