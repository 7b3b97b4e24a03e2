// The part of CachedStore that decides and writes. The plan is asked before the
// bytes are copied, so a refused record costs nothing. The writer moves or
// frees the records that it pushes out, just before it writes.

#include <algorithm>
#include <cstring>
#include <utility>

#include "leat/cache/cached_store.h"

namespace leat {
namespace {

/// If a rank has not read a record of an earlier run in so many epochs for each
/// rank of the node, no rank will.
constexpr AccessTime kEpochsARank = 4;

}  // namespace

// --- deciding ----------------------------------------------------------------

PlannedRecord CachedStore::planned(const Use& use) const {
  return {.key = use.key,
          .next_use = own_next_use(use),
          .length_bytes = static_cast<std::uint32_t>(use.bytes.size()),
          .may_last = use.has_etag,
          .sample = use.hint.sample ? SampleId{*use.hint.sample}
                                    : PlannedRecord::kNoSample};
}

/// Takes it, if so.
bool CachedStore::has_room_in_queue(std::uint64_t bytes) {
  const MutexLock lock(mutex_);
  const std::uint64_t most = std::max(options_.queue_bytes, least_queue_);
  if (queued_bytes_ != 0 && queued_bytes_ + bytes > most) return false;
  queued_bytes_ += bytes;
  return true;
}

/// A record is not kept, because the queue has no room for it.
void CachedStore::refuse(const RecordKey& key) {
  count_refusal();
  end_turn_of(key);
}

void CachedStore::count_refusal() {
  if (metrics_ != nullptr) metrics_->add(Metric::kCacheRefusals, 1);
}

void CachedStore::decide_used(std::size_t level, const Use& use) {
  // The first tier's records cannot rise: nothing will be written.
  const bool may_rise = level != 0 && has_room_in_queue(use.bytes.size());
  if (level != 0 && !may_rise) count_refusal();
  Write write{.now = use.hint.now, .key = use.key};
  {
    const MutexLock lock(deciding_);
    const bool is_ours =
        !plan_.holds(level, use.key) && tiers_[level].tier->claim(use.key);
    const PlannedRecord own = planned(use);
    PlannedRecord record = own;
    record.next_use = next_use_of_any(use, own);
    plan_.used(level, record, write.now, may_rise, is_ours, write.steps);
    hold_for_others(use, own, record.next_use);
  }
  queue(std::move(write), use, may_rise);
}

void CachedStore::decide_fetched(const Use& use) {
  const bool has_room = has_room_in_queue(use.bytes.size());
  if (!has_room && !is_in_memory_) return refuse(use.key);
  Write write;
  plan_fetched(use, write);
  if (!has_room) return write_now(std::move(write), use);
  const bool is_kept = !write.steps.empty();
  queue(std::move(write), use, /*has_room=*/true);
  if (!is_kept) end_turn_of(use.key);
}

void CachedStore::plan_fetched(const Use& use, Write& write) {
  write.now = use.hint.now;
  write.key = use.key;
  AccessTime asked = 0;
  {
    const MutexLock lock(mutex_);
    asked = asked_;
  }
  const MutexLock lock(deciding_);
  PlannedRecord own = planned(use);
  const bool is_late = look_past_asked(use, asked, own);
  PlannedRecord record = own;
  record.next_use = next_use_of_any(use, own);
  // A rank that has asked since then has told, or will.
  if (!is_late || !plan_.level_of(use.key)) {
    plan_.fetched(record, write.now, write.steps);
  }
  if (use.instead_of && plan_.level_of(use.key)) {
    plan_.forget(*use.instead_of, write.steps);
  }
  hold_for_others(use, own, record.next_use);
}

/// Memory needs no queue: the thread that has a record copies it.
void CachedStore::write_at_once(const Use& use) {
  Write write;
  plan_fetched(use, write);
  write_now(std::move(write), use);
}

/// Writes what was queued before it, too: steps are done in the order in which
/// they were decided.
void CachedStore::write_now(Write write, const Use& use) {
  if (write.steps.empty()) return end_turn_of(use.key);
  write.body = use.bytes;
  bool is_done = false;  // Guarded by turn_.
  write.is_done = &is_done;
  {
    const MutexLock lock(mutex_);
    queue_.push_back(std::move(write));
  }
  while (true) {
    const MutexLock lock(turn_);
    if (is_done) return;
    (void)write_next();
  }
}

/// It has come, and the plan may have it still.
void CachedStore::keep_decided(const Use& use) {
  const bool has_room = has_room_in_queue(use.bytes.size());
  if (!has_room && !is_in_memory_) {
    lose(use.key);
    return refuse(use.key);
  }
  Write write{.now = use.hint.now, .key = use.key};
  {
    const MutexLock lock(deciding_);
    for (std::size_t i = 0; i < tiers_.size(); ++i) {
      if (!plan_.holds(i, use.key)) continue;
      write.steps.push_back({.what = TierStep::What::kPut, .level = i});
    }
    const PlannedRecord own = planned(use);
    hold_for_others(use, own, next_use_of_any(use, own));
  }
  if (!has_room) return write_now(std::move(write), use);
  const bool is_kept = !write.steps.empty();
  queue(std::move(write), use, /*has_room=*/true);
  if (!is_kept) end_turn_of(use.key);
}

void CachedStore::lose(const RecordKey& key) {
  const MutexLock lock(deciding_);
  for (std::size_t i = 0; i < tiers_.size(); ++i) plan_.lost(i, key);
}

// Fetching and making take a while, in which the next epoch may have come to
// the same sample. It found nothing, so that use is over. When the one after it
// is, the record of the bytes was told, if there is one; else it is guessed to
// be an epoch later.
bool CachedStore::look_past_asked(const Use& use, AccessTime asked,
                                  PlannedRecord& record) const {
  if (record.next_use == kAlways || record.next_use > asked) return false;
  if (use.instead_of) {
    const auto told = plan_.next_use_of(*use.instead_of);
    if (told && *told > asked) {
      record.next_use = *told;
      return true;
    }
  }
  const AccessTime epochs = (asked - record.next_use) / options_.epoch_time + 1;
  record.next_use += epochs * options_.epoch_time;
  return true;
}

/// Copies the bytes if they are to be written, and gives the room back if not.
void CachedStore::queue(Write write, const Use& use, bool has_room) {
  const std::uint64_t size = use.bytes.size();
  const bool has_put = std::ranges::any_of(
      write.steps,
      [](const TierStep& step) { return step.what == TierStep::What::kPut; });
  if (has_put) {
    auto copy = std::make_shared<Buffer>(size);
    std::memcpy(copy->data(), use.bytes.data(), size);
    write.body = copy->span();
    write.bytes = std::move(copy);
  }
  if (!has_room && write.steps.empty()) return;
  const MutexLock lock(mutex_);
  if (has_room && !has_put) queued_bytes_ -= size;
  if (write.steps.empty()) return;
  if (has_put) unwritten_.insert_or_assign(write.key, write.bytes);
  queue_.push_back(std::move(write));
  queued_.notify_all();
}

void CachedStore::forget(const RecordKey& key) {
  Write write{.key = key};
  {
    const MutexLock lock(deciding_);
    plan_.forget(key, write.steps);
  }
  if (write.steps.empty()) return;
  const MutexLock lock(mutex_);
  queue_.push_back(std::move(write));
  queued_.notify_all();
}

void CachedStore::set_share(CacheLevel level,
                            std::optional<std::uint64_t> bytes) {
  const MutexLock one_by_one(sharing_);
  for (std::size_t i = 0; i < tiers_.size(); ++i) {
    if (tiers_[i].level != level) continue;
    const SegmentTierOptions& tier = tiers_[i].tier->options();
    Write write{.shared = i, .share = bytes};
    {
      const MutexLock lock(deciding_);
      plan_.set_capacity(
          i, bytes.value_or(tier.limit_bytes / tier.expected_writers),
          write.steps);
    }
    const MutexLock lock(mutex_);
    queue_.push_back(std::move(write));
    queued_.notify_all();
  }
}

void CachedStore::set_least_queue(std::uint64_t bytes) {
  const MutexLock lock(mutex_);
  least_queue_ = bytes;
}

// --- writing -----------------------------------------------------------------

void CachedStore::write_queued(const std::stop_token& stop) {
  TimePoint refreshed = SteadyClock().now();
  TimePoint caught_up = refreshed;
  while (true) {
    {
      MutexLock lock(mutex_);
      queued_.wait_for(
          lock, stop, options_.catch_up_every,
          [this]() LEAT_NO_THREAD_SAFETY_ANALYSIS { return !queue_.empty(); });
    }
    bool has_written = false;
    {
      const MutexLock lock(turn_);
      has_written = write_next();
    }
    if (stop.stop_requested()) {
      if (!has_written) return;
      continue;
    }
    if (SteadyClock().now() - refreshed >= options_.refresh_every) {
      see_files(/*has_new_files=*/true);
      see_others();
      refreshed = caught_up = SteadyClock().now();
    } else if (SteadyClock().now() - caught_up >= options_.catch_up_every) {
      see_others();
      caught_up = SteadyClock().now();
    }
  }
}

/// False: nothing is queued.
bool CachedStore::write_next() {
  std::optional<Write> write;
  {
    const MutexLock lock(mutex_);
    if (queue_.empty()) return false;
    write.emplace(std::move(queue_.front()));
    queue_.pop_front();
    ++writing_;
  }
  write_one(*write);
  return true;
}

void CachedStore::do_steps(const Write& write) {
  for (const TierStep& step : write.steps) {
    switch (step.what) {
      case TierStep::What::kPut:
        put(step, write);
        break;
      case TierStep::What::kDrop:
        drop(step.level, step.key);
        break;
      case TierStep::What::kDropCopy:
        tiers_[step.level].tier->drop(step.key);
        break;
      case TierStep::What::kMove:
        move(step, write);
        break;
    }
  }
}

void CachedStore::write_one(Write& write) {
  do_steps(write);
  if (write.shared) {
    tiers_[*write.shared].tier->set_share(write.share);
    {
      const MutexLock lock(deciding_);
      allowed_[*write.shared] = kNotTold;
    }
    follow_allowance();
  }
  end_turn_of(write.key);
  if (write.is_done != nullptr) *write.is_done = true;
  const MutexLock lock(mutex_);
  --writing_;
  if (write.bytes != nullptr) {
    queued_bytes_ -= write.bytes->size();
    const auto found = unwritten_.find(write.key);
    if (found != unwritten_.end() && found->second == write.bytes) {
      unwritten_.erase(found);
    }
  }
  if (queue_.empty()) drained_.notify_all();
}

void CachedStore::drop(std::size_t level, const RecordKey& key) {
  {
    const MutexLock lock(deciding_);
    if (plan_.holds(level, key)) return;  // Read again meanwhile.
  }
  tiers_[level].tier->drop(key);
}

/// A record that was pushed down before it was written goes to the tier that it
/// was pushed to.
void CachedStore::put(const TierStep& step, const Write& write) {
  std::size_t level = step.level;
  {
    const MutexLock lock(deciding_);
    while (level < tiers_.size() && !plan_.holds(level, write.key)) ++level;
  }
  if (level == tiers_.size()) return;
  insert(level, write.key, write.body, write.now);
}

void CachedStore::move(const TierStep& step, const Write& write) {
  bool is_wanted = false;
  {
    const MutexLock lock(deciding_);
    is_wanted = plan_.holds(step.to, step.key);
  }
  if (is_wanted && !tiers_[step.to].tier->holds(step.key)) {
    Buffer body(step.length_bytes);
    if (tiers_[step.level].tier->read(step.key, body.span())) {
      insert(step.to, step.key, body.span(), write.now);
    } else {
      const MutexLock lock(deciding_);
      plan_.lost(step.to, step.key);
    }
  }
  drop(step.level, step.key);
}

void CachedStore::insert(std::size_t level, const RecordKey& key,
                         std::span<const std::byte> bytes, AccessTime now) {
  SegmentTier& tier = *tiers_[level].tier;
  // By then each rank has met nearly all that it may.
  const AccessTime most =
      kEpochsARank * tier.options().expected_writers * options_.epoch_time;
  const bool wants_strangers = tier.wants_strangers();
  bool may_free_own = false;
  {
    const MutexLock lock(mutex_);
    const AccessTime after = free_after_.value_or(kNever);
    may_free_own = now >= after && (!wants_strangers || now - after >= most);
  }
  (void)tier.make_room(record_cost(bytes.size()), may_free_own);
  const std::uint64_t files = tier.files_made();
  bool is_held = tier.insert(key, bytes);
  if (!is_held &&
      tier.used_bytes() + record_cost(bytes.size()) > tier.allowed_bytes()) {
    is_held = insert_later(level, key, bytes);
  }
  if (turns_ != nullptr && tier.files_made() != files) turns_->announce();
  if (is_held) return;
  count_refusal();
  const MutexLock lock(deciding_);
  plan_.lost(level, key);
}

/// The planned room is there once all later decisions are carried out, and the
/// room that others leave may have shrunk.
bool CachedStore::insert_later(std::size_t level, const RecordKey& key,
                               std::span<const std::byte> bytes) {
  follow_allowance();
  while (write_next()) {
  }
  {
    const MutexLock lock(deciding_);
    if (!plan_.holds(level, key)) return false;
  }
  return tiers_[level].tier->insert(key, bytes);
}

void CachedStore::drain() {
  MutexLock lock(mutex_);
  drained_.wait(lock, [this]() LEAT_NO_THREAD_SAFETY_ANALYSIS {
    return queue_.empty() && writing_ == 0;
  });
}

}  // namespace leat
