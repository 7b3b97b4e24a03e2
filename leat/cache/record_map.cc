#include "leat/cache/record_map.h"

#include <algorithm>
#include <utility>

#include "leat/cache/segment_format.h"

namespace leat {

RecordPlace place_of(std::uint32_t segment, const RecordEntry& entry) {
  return {.segment = segment,
          .page = static_cast<std::uint32_t>(entry.offset / kPageBytes),
          .length_bytes = static_cast<std::uint32_t>(entry.length_bytes),
          .body_crc = entry.body_crc};
}

RecordMap::~RecordMap() {
  if (metrics_ == nullptr) return;
  metrics_->add(bytes_metric_, -static_cast<std::int64_t>(used_bytes_.load()));
}

// --- what is known -----------------------------------------------------------

bool RecordMap::holds(const RecordKey& key) const {
  const MutexLock lock(mutex_);
  return records_.contains(key);
}

std::optional<FoundRecord> RecordMap::find(const RecordKey& key) const {
  const MutexLock lock(mutex_);
  const auto found = records_.find(key);
  if (found == records_.end()) return std::nullopt;
  const RecordPlace& place = found->second.place;
  return FoundRecord{place, segments_[place.segment]};
}

bool RecordMap::is_at(const RecordKey& key, std::uint32_t number,
                      const RecordEntry& entry) const {
  const MutexLock lock(mutex_);
  const auto found = records_.find(key);
  return found != records_.end() && found->second.place.segment == number &&
         std::uint64_t{found->second.place.page} * kPageBytes == entry.offset;
}

std::uint64_t RecordMap::records() const {
  const MutexLock lock(mutex_);
  return records_.size();
}

std::uint64_t RecordMap::segments() const {
  const MutexLock lock(mutex_);
  return static_cast<std::uint64_t>(std::ranges::count_if(
      segments_, [](const auto& held) { return held != nullptr; }));
}

// --- segments ----------------------------------------------------------------

std::uint32_t RecordMap::end() const {
  const MutexLock lock(mutex_);
  return static_cast<std::uint32_t>(segments_.size());
}

HeldSegmentRef RecordMap::at(std::uint32_t number) const {
  const MutexLock lock(mutex_);
  return segments_[number];
}

std::uint32_t RecordMap::add(HeldSegmentRef held) {
  const MutexLock lock(mutex_);
  for (std::uint32_t i = 0; i < segments_.size(); ++i) {
    if (segments_[i] != nullptr) continue;
    segments_[i] = std::move(held);
    return i;
  }
  segments_.push_back(std::move(held));
  return static_cast<std::uint32_t>(segments_.size() - 1);
}

void RecordMap::forget_segment(std::uint32_t number) {
  const MutexLock lock(mutex_);
  HeldSegment& held = *segments_[number];
  if (held.is_mine) {
    used_bytes_ -= held.alive_bytes;
    if (metrics_ != nullptr) {
      metrics_->add(bytes_metric_,
                    -static_cast<std::int64_t>(held.alive_bytes.load()));
    }
  }
  forget_spares_in(number);
  for (auto at = records_.begin(); at != records_.end();) {
    const auto record = at++;
    if (record->second.place.segment == number) leave_place(record);
  }
  std::erase_if(given_up_,
                [&](const auto& bad) { return bad.second.segment == number; });
  segments_[number] = nullptr;
}

bool RecordMap::has_mine() const {
  const MutexLock lock(mutex_);
  return std::ranges::any_of(segments_, [](const auto& held) {
    return held != nullptr && held->is_mine;
  });
}

void RecordMap::count_as_mine(std::uint32_t number, std::uint64_t bytes,
                              std::uint64_t of_own_source) {
  const MutexLock lock(mutex_);
  HeldSegment& held = *segments_[number];
  forget_spares_in(number);  // `bytes` has none of them.
  held.is_mine = true;
  held.alive_bytes = 0;
  taken_over_ += of_own_source;
  add_used(held, static_cast<std::int64_t>(bytes));
}

// --- records -----------------------------------------------------------------

void RecordMap::hear(std::uint32_t number, const RecordEntry& entry) {
  const MutexLock lock(mutex_);
  hear_locked(number, entry);
}

void RecordMap::hear_locked(std::uint32_t number, const RecordEntry& entry) {
  const RecordPlace place = place_of(number, entry);
  HeldSegment& held = *segments_[number];
  const std::uint64_t cost = record_cost(entry.length_bytes);
  if (entry.kind == RecordEntry::Kind::kPut) {
    if (!held.is_mine) held.alive_bytes += cost;
    return hear_put(entry.key, place);
  }
  if (!held.is_mine) {
    held.alive_bytes -= std::min<std::uint64_t>(cost, held.alive_bytes);
  }
  hear_drop(entry.key, place);
}

void RecordMap::hear_put(const RecordKey& key, const RecordPlace& place) {
  const auto [found, is_new] = records_.try_emplace(key, Known{place});
  RecordPlace& known = found->second.place;
  if (is_new || known == place) return;
  if (segments_[known.segment]->is_mine) {
    spares_.emplace(key, place);
    return;
  }
  // A writer that copies a record on will remove the earlier place.
  spares_.emplace(key, std::exchange(known, place));
}

void RecordMap::hear_drop(const RecordKey& key, const RecordPlace& place) {
  const auto is_there = [&](const RecordPlace& known) {
    return known.segment == place.segment && known.page == place.page;
  };
  const auto found = records_.find(key);
  if (found == records_.end()) return;
  if (is_there(found->second.place)) return leave_place(found);
  auto [at, end] = spares_.equal_range(key);
  while (at != end && !is_there(at->second)) ++at;
  if (at != end) spares_.erase(at);
}

/// The record is not where it was: takes another place of it, if there is one.
void RecordMap::leave_place(Records::iterator found) {
  const auto spare = spares_.find(found->first);
  if (spare == spares_.end()) {
    records_.erase(found);
    return;
  }
  found->second = Known{spare->second};
  spares_.erase(spare);
}

void RecordMap::forget_spares_in(std::uint32_t number) {
  std::erase_if(spares_, [&](const auto& spare) {
    return spare.second.segment == number;
  });
}

void RecordMap::wrote(std::uint32_t number, const RecordEntry& entry) {
  const MutexLock lock(mutex_);
  hear_locked(number, entry);
  records_.find(entry.key)->second.is_claimed = true;
  add_used(*segments_[number],
           static_cast<std::int64_t>(record_cost(entry.length_bytes)));
}

std::optional<FoundRecord> RecordMap::take(const RecordKey& key) {
  const MutexLock lock(mutex_);
  const auto found = records_.find(key);
  if (found == records_.end()) return std::nullopt;
  const RecordPlace place = found->second.place;
  HeldSegmentRef held = segments_[place.segment];
  if (!held->is_mine) return std::nullopt;
  leave_place(found);
  add_used(*held, -static_cast<std::int64_t>(record_cost(place.length_bytes)));
  return FoundRecord{place, std::move(held)};
}

void RecordMap::moved(const RecordKey& key, const RecordPlace& from,
                      const RecordPlace& to) {
  const auto cost = static_cast<std::int64_t>(record_cost(to.length_bytes));
  const MutexLock lock(mutex_);
  const auto found = records_.find(key);
  if (found == records_.end() || found->second.place != from) return;
  found->second.place = to;
  add_used(*segments_[from.segment], -cost);
  add_used(*segments_[to.segment], cost);
}

void RecordMap::give_up(const RecordKey& key, const RecordPlace& place) {
  const MutexLock lock(mutex_);
  const auto found = records_.find(key);
  // Dropped or moved in the meantime: then it was not bad.
  if (found == records_.end() || found->second.place != place) return;
  leave_place(found);
  if (metrics_ != nullptr) metrics_->add(Metric::kCacheBadRecords, 1);
  HeldSegment& held = *segments_[place.segment];
  if (!held.is_mine) return;
  add_used(held, -static_cast<std::int64_t>(record_cost(place.length_bytes)));
  given_up_.emplace_back(key, place);
}

std::vector<std::pair<RecordKey, RecordPlace>> RecordMap::take_given_up() {
  const MutexLock lock(mutex_);
  return std::exchange(given_up_, {});
}

void RecordMap::add_used(HeldSegment& held, std::int64_t bytes) {
  held.alive_bytes += static_cast<std::uint64_t>(bytes);
  used_bytes_ += static_cast<std::uint64_t>(bytes);
  if (metrics_ != nullptr) metrics_->add(bytes_metric_, bytes);
}

// --- claims ------------------------------------------------------------------

std::optional<bool> RecordMap::claim(const RecordKey& key) {
  const MutexLock lock(mutex_);
  const auto found = records_.find(key);
  if (found == records_.end()) return std::nullopt;
  return claim(found->second);
}

bool RecordMap::claim(Known& known) {
  // Our plan cannot free another writer's record.
  if (!segments_[known.place.segment]->is_mine) return false;
  if (!std::exchange(known.is_claimed, true)) ++claimed_;
  return true;
}

bool RecordMap::is_claimed(const RecordKey& key) const {
  const MutexLock lock(mutex_);
  const auto found = records_.find(key);
  return found != records_.end() && found->second.is_claimed;
}

bool RecordMap::are_claimed_by(std::uint32_t ranks) const {
  const MutexLock lock(mutex_);
  return 2 * claimed_ * ranks >= taken_over_;
}

}  // namespace leat
