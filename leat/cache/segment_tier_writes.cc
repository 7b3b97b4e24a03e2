// The part of SegmentTier that puts records in and frees them.

#include "leat/cache/segment_tier.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "leat/base/units.h"
#include "leat/cache/held_segment.h"
#include "leat/runtime/log.h"

namespace leat {
namespace {

std::uint32_t entries_for(std::uint64_t segment_bytes) {
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(
      2 * segment_bytes / kPageBytes, 64, kMostEntries));
}

}  // namespace

/// Whether one that is known is ours; nullopt: it is not known.
std::optional<bool> SegmentTier::claim_known(const RecordKey& key) {
  const MutexLock lock(mutex_);
  const auto found = records_.find(key);
  if (found == records_.end()) return std::nullopt;
  return claim_if_mine(found->second);
}

bool SegmentTier::claim_if_mine(Known& known) {
  // Another's cannot be freed by our plan.
  if (!segments_[known.place.segment]->is_mine) return false;
  if (!std::exchange(known.is_claimed, true)) ++claimed_;
  return true;
}

bool SegmentTier::insert(const RecordKey& key,
                         std::span<const std::byte> body) {
  if (body.empty() || body.size() > kMostRecordBytes) return false;
  if (!writing_health_.may_try()) return false;
  const MutexLock lock(writing_);
  punch_given_up();
  if (const auto known = claim_known(key)) return *known;
  const std::uint64_t cost = record_cost(body.size());
  if (used_bytes_ + cost > allowed_bytes_) return false;
  const TimePoint before = clock_.now();
  Result<std::uint32_t> number = segment_for(body.size());
  if (number && used_bytes_ + cost > leased_bytes_) {
    if (!lease(cost)) return false;
    // That has looked at what others did, and taken over what dead ones left.
    if (const auto known = claim_known(key)) return *known;
    number = segment_for(body.size());
  }
  Result<RecordEntry> entry =
      number ? held_at(*number)->segment.append(key, options_.source, body)
             : Result<RecordEntry>(number.error());
  const Nanoseconds took = clock_.now() - before;
  if (!entry) {
    writing_health_.failed(entry.error().message());
    return false;
  }
  if (took > TierHealth::kSlow) {
    writing_health_.failed("writing a record took " + format_duration(took));
  } else {
    writing_health_.worked();
  }
  hear(*number, *entry);
  const MutexLock map_lock(mutex_);
  records_.find(key)->second.is_claimed = true;
  add_used(*segments_[*number], static_cast<std::int64_t>(cost));
  if (metrics_ != nullptr) metrics_->add(Metric::kCacheInserts, 1);
  return true;
}

Result<std::uint32_t> SegmentTier::segment_for(std::uint64_t length_bytes) {
  const auto fits = [&](std::uint32_t number) {
    const auto held = held_at(number);
    return held != nullptr && held->is_mine && !held->is_emptying &&
           held->segment.has_room(length_bytes, options_.segment_bytes);
  };
  if (active_ && fits(*active_)) return *active_;
  const std::optional<std::uint32_t> before = std::exchange(active_, {});
  for (std::uint32_t i = 0; i < segment_count() && !active_; ++i) {
    if (fits(i)) active_ = i;
  }
  if (!active_) {
    LEAT_TRY(active_, make_segment());
  }
  const std::uint32_t found = *active_;
  if (before) tidy(*before);  // May make another one active.
  return found;
}

Result<std::uint32_t> SegmentTier::make_segment() {
  if (!has_segments()) leased_bytes_ = 0;  // Nobody could see it.
  const SegmentHeader header{.id = draw_id(),
                             .owner = owner_,
                             .entry_count = entries_for(options_.segment_bytes),
                             .leased_bytes = leased_bytes_};
  LEAT_TRY(SegmentFiles::Opened file, files_->create(header));
  std::optional<Segment> segment = Segment::open(std::move(file), ops_);
  if (!segment) {
    return Error(ErrorCode::kUnavailable, "a new segment cannot be read back");
  }
  segment->map(options_.segment_bytes);
  auto held = std::make_shared<Held>(*std::move(segment));
  held->is_mine = true;
  find_out_if_holes_work(*held);
  ++files_made_;
  return add_segment(std::move(held));
}

void SegmentTier::find_out_if_holes_work(Held& held) {
  const std::uint64_t end = held.segment.end();
  const int error = ops_.punch(held.segment.fd(), end, kPageBytes);
  const bool works = error != -EOPNOTSUPP && error != -ENOSYS;
  if (!works && can_drop_.exchange(false)) {
    log_warning(
        fmt::format("{} cannot punch holes in files: the {} tier keeps what "
                    "comes first and frees nothing",
                    files_->where(), options_.name));
  }
}

std::uint32_t SegmentTier::add_segment(std::shared_ptr<Held> held) {
  const MutexLock lock(mutex_);
  for (std::uint32_t i = 0; i < segments_.size(); ++i) {
    if (segments_[i] != nullptr) continue;
    segments_[i] = std::move(held);
    return i;
  }
  segments_.push_back(std::move(held));
  return static_cast<std::uint32_t>(segments_.size() - 1);
}

void SegmentTier::drop(const RecordKey& key) {
  const MutexLock lock(writing_);
  drop_held(key);
}

void SegmentTier::drop_held(const RecordKey& key) {
  if (!can_drop_) return;
  Place place;
  std::shared_ptr<Held> held;
  {
    const MutexLock lock(mutex_);
    const auto found = records_.find(key);
    if (found == records_.end()) return;
    place = found->second.place;
    held = segments_[place.segment];
    if (!held->is_mine) return;
    records_.erase(found);
    add_used(*held,
             -static_cast<std::int64_t>(record_cost(place.length_bytes)));
  }
  if (metrics_ != nullptr) metrics_->add(Metric::kCacheDrops, 1);
  const Result<void> dropped =
      held->segment.drop({.kind = RecordEntry::Kind::kDrop,
                          .key = key,
                          .source = 0,
                          .offset = std::uint64_t{place.page} * kPageBytes,
                          .length_bytes = place.length_bytes,
                          .body_crc = place.body_crc});
  if (!dropped) writing_health_.failed(dropped.error().message());
  tidy(place.segment);
}

bool SegmentTier::claim(const RecordKey& key) {
  const MutexLock lock(mutex_);
  const auto found = records_.find(key);
  return found != records_.end() && claim_if_mine(found->second);
}

bool SegmentTier::wants_strangers() const {
  const MutexLock lock(mutex_);
  return options_.expected_writers > 1 &&
         2 * claimed_ * options_.expected_writers >= taken_over_;
}

bool SegmentTier::make_room(std::uint64_t bytes, bool of_own_source) {
  const MutexLock lock(writing_);
  return drop_strangers(strangers_, bytes) ||
         (of_own_source && drop_strangers(own_strangers_, bytes));
}

bool SegmentTier::drop_strangers(std::deque<RecordKey>& strangers,
                                 std::uint64_t bytes) {
  while (used_bytes_ + bytes > allowed_bytes_) {
    if (strangers.empty() || !can_drop_) return false;
    const RecordKey key = strangers.front();
    strangers.pop_front();
    {
      const MutexLock lock(mutex_);
      const auto found = records_.find(key);
      if (found == records_.end() || found->second.is_claimed) continue;
    }
    drop_held(key);
  }
  return true;
}

}  // namespace leat
