#include "leat/cache/kept_records.h"

#include <algorithm>
#include <utility>

namespace leat {

KeptRecords::KeptRecords(std::vector<CacheTier> tiers,
                         const CachedStoreOptions& options,
                         CacheSharing sharing, Metrics* metrics)
    : decides_when_sent_(options.decides_when_sent),
      metrics_(metrics),
      tiers_(std::move(tiers)),
      board_(std::move(sharing.board)),
      is_in_memory_(std::ranges::all_of(
          tiers_,
          [](const CacheTier& t) { return t.level == CacheLevel::kRam; })),
      clock_(options.epoch_time),
      queue_(options.queue_bytes),
      decisions_(take_policies(tiers_),
                 {board_.get(), options.epoch_time, sharing.keeps_bytes}),
      lookup_(tiers_, queue_, decisions_),
      turns_(make_turns(std::move(sharing.claims))),
      writer_({.tiers = tiers_,
               .queue = queue_,
               .decisions = decisions_,
               .clock = clock_,
               .turns = turns_.get(),
               .board = board_.get(),
               .metrics = metrics},
              {.refresh_every = options.refresh_every,
               .catch_up_every = options.catch_up_every}) {}

std::unique_ptr<FetchTurns> KeptRecords::make_turns(
    std::unique_ptr<RecordClaims> claims) {
  if (claims == nullptr) return nullptr;
  claims->announce();  // The tiers may have files from the start.
  if (board_ != nullptr) board_->look();
  return std::make_unique<FetchTurns>(
      std::move(claims),
      SharedTiers{
          .see_others =
              [this](bool has_new_files) { see_files(tiers_, has_new_files); },
          .is_there =
              [this](const RecordKey& key) { return lookup_.may_have(key); }},
      FetchTurns::Options{});
}

std::optional<CacheLevel> KeptRecords::take(const CacheUse& use,
                                            std::span<std::byte> into) {
  // A record that waits to be written already belongs to the first tier.
  if (lookup_.copy_queued(use.key, into)) return joined(use);
  const std::optional<std::size_t> level = lookup_.read(use.key, into);
  if (!level) return std::nullopt;
  used(*level, use);
  return tiers_[*level].level;
}

CacheLevel KeptRecords::joined(const CacheUse& use) {
  if (const auto level = decisions_.level_of(use.key)) used(*level, use);
  return tiers_.front().level;
}

void KeptRecords::used(std::size_t level, const CacheUse& use) {
  // The first tier's records cannot rise, so nothing will be written.
  const bool may_rise = level != 0 && queue_.reserve(use.bytes.size());
  if (level != 0 && !may_rise) count(Metric::kCacheRefusals);
  queue_.push(decisions_.used(level, use, may_rise, *tiers_[level].tier),
              use.bytes, may_rise);
}

bool KeptRecords::sent(const CacheUse& use) {
  if (!decides_when_sent_) return false;
  std::optional<CacheWrite> write = decisions_.sent(use);
  if (!write) return false;
  queue_.push(*std::move(write), use.bytes, /*is_reserved=*/false);
  return true;
}

void KeptRecords::came(const CacheUse& use) {
  const bool has_room = queue_.reserve(use.bytes.size());
  if (!has_room && !is_in_memory_) {
    lose(use.key);
    return refuse(use.key);
  }
  keep(decisions_.came(use), use, has_room);
}

void KeptRecords::fetched(const CacheUse& use) {
  const bool has_room = queue_.reserve(use.bytes.size());
  if (!has_room && !is_in_memory_) return refuse(use.key);
  keep(decisions_.fetched(use, clock_.asked()), use, has_room);
}

// Nobody waits for memory: copying now saves the copy for a queue.
void KeptRecords::made(const CacheUse& use) {
  if (!is_in_memory_) return fetched(use);
  keep(decisions_.fetched(use, clock_.asked()), use, /*has_room=*/false);
}

/// Memory needs no queue: if it has no room, the thread that has the record
/// copies it.
void KeptRecords::keep(CacheWrite write, const CacheUse& use, bool has_room) {
  const bool is_kept = !write.steps.empty();
  if (has_room) {
    queue_.push(std::move(write), use.bytes, /*is_reserved=*/true);
  } else if (is_kept) {
    write.body = use.bytes;
    return writer_.write_now(std::move(write));
  }
  if (!is_kept) end_turn(use.key);
}

/// A record is not kept because the queue is full.
void KeptRecords::refuse(const RecordKey& key) {
  count(Metric::kCacheRefusals);
  end_turn(key);
}

void KeptRecords::forget(const RecordKey& key) {
  CacheWrite write = decisions_.forget(key);
  if (!write.steps.empty()) queue_.push(std::move(write));
}

void KeptRecords::end_turn(const RecordKey& key) {
  if (turns_ != nullptr) turns_->end(key);
}

void KeptRecords::count(Metric metric) {
  if (metrics_ != nullptr) metrics_->add(metric, 1);
}

void KeptRecords::set_share(CacheLevel level,
                            std::optional<std::uint64_t> bytes) {
  const MutexLock one_by_one(sharing_);
  for (std::size_t i = 0; i < tiers_.size(); ++i) {
    if (tiers_[i].level != level) continue;
    const SegmentTierOptions& tier = tiers_[i].tier->options();
    CacheWrite write = decisions_.set_capacity(
        i, bytes.value_or(tier.limit_bytes / tier.expected_writers));
    write.shared = i;
    write.share = bytes;
    queue_.push(std::move(write));
  }
}

void KeptRecords::begin_plan(
    AccessTime now, const std::function<AccessTime(SampleId)>& next_use_of) {
  clock_.begin_plan(now);
  CacheWrite write = decisions_.begin_plan(now, next_use_of);
  if (!write.steps.empty()) queue_.push(std::move(write));
}

}  // namespace leat
