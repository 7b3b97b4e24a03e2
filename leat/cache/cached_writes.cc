// The part of CachedStore that decides and writes. The plan is asked before the
// bytes are copied: what is refused costs nothing. What it pushes out is moved
// or freed by the writer, just before it writes.

#include <algorithm>
#include <cstring>
#include <utility>

#include "leat/cache/cached_store.h"

namespace leat {

// --- deciding ----------------------------------------------------------------

PlannedRecord CachedStore::planned(const Use& use) const {
  return {.key = use.key,
          .next_use = is_wanted_soon(use) ? kAtOnce : own_next_use(use.hint),
          .length_bytes = static_cast<std::uint32_t>(use.bytes.size()),
          .may_last = use.has_etag};
}

/// Takes it, if so.
bool CachedStore::has_room_in_queue(std::uint64_t bytes) {
  const MutexLock lock(mutex_);
  const std::uint64_t most = std::max(options_.queue_bytes, least_queue_);
  if (queued_bytes_ != 0 && queued_bytes_ + bytes > most) {
    if (metrics_ != nullptr) metrics_->add(Metric::kCacheRefusals, 1);
    return false;
  }
  queued_bytes_ += bytes;
  return true;
}

void CachedStore::decide_used(std::size_t level, const Use& use) {
  // The first tier's records cannot rise: nothing will be written.
  const bool may_rise = level != 0 && has_room_in_queue(use.bytes.size());
  Write write{.now = use.hint.now, .key = use.key};
  {
    const MutexLock lock(deciding_);
    const bool is_ours =
        !plan_.holds(level, use.key) && tiers_[level].tier->claim(use.key);
    plan_.used(level, planned(use), write.now, may_rise, is_ours, write.steps);
    hold_for_others(use);
  }
  queue(std::move(write), use, may_rise);
}

void CachedStore::decide_fetched(const Use& use) {
  if (!has_room_in_queue(use.bytes.size())) return end_turn_of(use.key);
  Write write{.now = use.hint.now, .key = use.key};
  AccessTime asked = 0;
  {
    const MutexLock lock(mutex_);
    asked = asked_;
  }
  {
    const MutexLock lock(deciding_);
    PlannedRecord record = planned(use);
    const bool is_late = look_past_asked(use, asked, record);
    // Who has asked since has told, or will.
    if (!is_late || !plan_.level_of(use.key)) {
      plan_.fetched(record, write.now, write.steps);
    }
    if (use.instead_of && plan_.level_of(use.key)) {
      plan_.forget(*use.instead_of, write.steps);
    }
    hold_for_others(use);
  }
  const bool is_kept = !write.steps.empty();
  queue(std::move(write), use, /*has_room=*/true);
  if (!is_kept) end_turn_of(use.key);
}

// Fetching and making take a while, in which the next epoch may have come to
// the same sample. It found nothing, so that use is over. When the one after it
// is, the record of the bytes was told, if there is one; else it is guessed to
// be an epoch later.
bool CachedStore::look_past_asked(const Use& use, AccessTime asked,
                                  PlannedRecord& record) const {
  if (record.next_use == kAtOnce || record.next_use > asked) return false;
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
    write.bytes = std::move(copy);
  }
  if (!has_room && write.steps.empty()) return;
  const MutexLock lock(mutex_);
  if (has_room && !has_put) queued_bytes_ -= size;
  if (write.steps.empty()) return;
  if (has_put) unwritten_.insert_or_assign(write.key, write.bytes);
  queue_.push_back(std::move(write));
  changed_.notify_all();
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
  changed_.notify_all();
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
    changed_.notify_all();
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
    std::optional<Write> write;
    {
      MutexLock lock(mutex_);
      changed_.wait_for(
          lock, stop, options_.catch_up_every,
          [this]() LEAT_NO_THREAD_SAFETY_ANALYSIS { return !queue_.empty(); });
      if (!queue_.empty()) {
        write.emplace(std::move(queue_.front()));
        queue_.pop_front();
        is_writing_ = true;
      } else if (stop.stop_requested()) {
        return;
      }
    }
    if (write) write_one(*write);
    if (stop.stop_requested()) continue;
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
  if (write.shared) tiers_[*write.shared].tier->set_share(write.share);
  end_turn_of(write.key);
  const MutexLock lock(mutex_);
  is_writing_ = false;
  if (write.bytes != nullptr) {
    queued_bytes_ -= write.bytes->size();
    const auto found = unwritten_.find(write.key);
    if (found != unwritten_.end() && found->second == write.bytes) {
      unwritten_.erase(found);
    }
  }
  changed_.notify_all();
}

void CachedStore::drop(std::size_t level, const RecordKey& key) {
  {
    const MutexLock lock(deciding_);
    if (plan_.holds(level, key)) return;  // Read again meanwhile.
  }
  tiers_[level].tier->drop(key);
}

/// What was pushed down before it was written goes where it was pushed to.
void CachedStore::put(const TierStep& step, const Write& write) {
  std::size_t level = step.level;
  {
    const MutexLock lock(deciding_);
    while (level < tiers_.size() && !plan_.holds(level, write.key)) ++level;
  }
  if (level == tiers_.size()) return;
  insert(level, write.key, write.bytes->span(), write.now);
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
  bool may_free_own = false;
  {
    const MutexLock lock(mutex_);
    may_free_own = free_after_ && now >= *free_after_;
  }
  (void)tier.make_room(record_cost(bytes.size()), may_free_own);
  const std::uint64_t files = tier.files_made();
  const bool is_held = tier.insert(key, bytes);
  if (turns_ != nullptr && tier.files_made() != files) turns_->announce();
  if (is_held) return;
  if (metrics_ != nullptr) metrics_->add(Metric::kCacheRefusals, 1);
  const MutexLock lock(deciding_);
  plan_.lost(level, key);
}

void CachedStore::drain() {
  MutexLock lock(mutex_);
  changed_.wait(lock, [this]() LEAT_NO_THREAD_SAFETY_ANALYSIS {
    return queue_.empty() && !is_writing_;
  });
}

}  // namespace leat
