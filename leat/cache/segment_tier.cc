// Opening a tier, looking up and reading. The code that changes a tier is in
// segment_tier_writes.cc, segment_tier_others.cc and segment_tier_cleaning.cc.
//
// Two locks. `writing_` is held to change files or the list of segments: by one
// thread at a time, for as long as the I/O takes. `mutex_` guards the map of
// records, and is never held across I/O: so a reader waits for no writer.
//
// A reader works with a copy of a record's place and a share of its segment, so
// the record may be punched and the file unlinked under it: the checksum then
// fails, and that is a miss.

#include "leat/cache/segment_tier.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "leat/base/units.h"
#include "leat/cache/held_segment.h"

namespace leat {
namespace {

SegmentTierOptions chosen(SegmentTierOptions options) {
  if (options.segment_bytes == 0) {
    options.segment_bytes =
        std::clamp(options.limit_bytes / 32, 4 * kMiB, kGiB);
  }
  return options;
}

}  // namespace

SegmentTier::SegmentTier(std::unique_ptr<SegmentFiles> files,
                         const SegmentTierOptions& options, FileOps& ops,
                         const Clock& clock, Metrics* metrics)
    : options_(chosen(options)),
      files_(std::move(files)),
      ops_(ops),
      clock_(clock),
      metrics_(metrics),
      owner_(draw_id()),
      reading_health_(
          fmt::format("the {} tier in {}", options.name, files_->where()),
          clock, metrics),
      writing_health_(fmt::format("writing to the {} tier in {}", options.name,
                                  files_->where()),
                      clock, metrics),
      allowed_bytes_(0) {}

Result<std::unique_ptr<SegmentTier>> SegmentTier::open(
    std::unique_ptr<SegmentFiles> files, const SegmentTierOptions& options,
    FileOps& ops, const Clock& clock, Metrics* metrics) {
  std::unique_ptr<SegmentTier> tier(
      new SegmentTier(std::move(files), options, ops, clock, metrics));
  const MutexLock lock(tier->writing_);
  LEAT_TRY_VOID(tier->learn_segments());
  tier->share_limit();
  if (Result<std::uint32_t> made = tier->segment_for(1); !made) {
    // A full disk may have room later, and a read-only one be of use.
    if (made.error().code() != ErrorCode::kResourceExhausted &&
        tier->records() == 0) {
      return std::move(made).error();
    }
    tier->writing_health_.failed(made.error().message());
  }
  tier->shed_strangers();
  return tier;
}

SegmentTier::~SegmentTier() {
  const MutexLock lock(writing_);
  for (std::uint32_t i = 0; i < segment_count(); ++i) {
    const auto held = held_at(i);
    if (held == nullptr || !held->is_mine) continue;
    if (held->alive_bytes == 0) files_->remove(held->segment.header().id);
  }
  if (metrics_ != nullptr) {
    metrics_->add(options_.bytes_metric,
                  -static_cast<std::int64_t>(used_bytes_.load()));
    metrics_->add(options_.allowed_metric,
                  -static_cast<std::int64_t>(allowed_bytes_.load()));
  }
}

bool SegmentTier::may_hold(const RecordKey& key) const {
  return reading_health_.may_try() && holds(key);
}

std::optional<std::uint64_t> SegmentTier::length_of(
    const RecordKey& key) const {
  if (!reading_health_.may_try()) return std::nullopt;
  const MutexLock lock(mutex_);
  const auto found = records_.find(key);
  if (found == records_.end()) return std::nullopt;
  return found->second.place.length_bytes;
}

bool SegmentTier::holds(const RecordKey& key) const {
  const MutexLock lock(mutex_);
  return records_.contains(key);
}

bool SegmentTier::read(const RecordKey& key, std::span<std::byte> into) {
  if (!reading_health_.may_try()) return false;
  std::shared_ptr<Held> held;
  Place place;
  {
    const MutexLock lock(mutex_);
    const auto found = records_.find(key);
    if (found == records_.end()) return false;
    place = found->second.place;
    held = segments_[place.segment];
  }
  if (place.length_bytes != into.size()) return false;
  const TimePoint before = clock_.now();
  const int error = held->segment.read_body(
      key, std::uint64_t{place.page} * kPageBytes, place.body_crc, into);
  const Nanoseconds took = clock_.now() - before;
  if (took > TierHealth::kSlow) {
    reading_health_.failed(fmt::format("reading {} took {}",
                                       format_bytes(into.size()),
                                       format_duration(took)));
  }
  if (error == 0) {
    reading_health_.worked();
    return true;
  }
  if (error != -ENODATA && error != -EBADMSG) {
    reading_health_.failed(file_error(error, "reading a record").message());
    return false;
  }
  give_up(key, place);
  return false;
}

/// Forgets a record that was found bad.
void SegmentTier::give_up(const RecordKey& key, const Place& place) {
  const MutexLock lock(mutex_);
  const auto found = records_.find(key);
  // Dropped or moved meanwhile: then it was not bad.
  if (found == records_.end() || found->second.place != place) return;
  records_.erase(found);
  if (metrics_ != nullptr) metrics_->add(Metric::kCacheBadRecords, 1);
  Held& held = *segments_[place.segment];
  if (!held.is_mine) return;
  add_used(held, -static_cast<std::int64_t>(record_cost(place.length_bytes)));
  given_up_.emplace_back(key, place);
}

std::shared_ptr<SegmentTier::Held> SegmentTier::held_at(
    std::uint32_t number) const {
  const MutexLock lock(mutex_);
  return segments_[number];
}

std::uint32_t SegmentTier::segment_count() const {
  const MutexLock lock(mutex_);
  return static_cast<std::uint32_t>(segments_.size());
}

bool SegmentTier::is_at(const RecordKey& key, std::uint32_t number,
                        const RecordEntry& entry) const {
  const MutexLock lock(mutex_);
  const auto found = records_.find(key);
  return found != records_.end() && found->second.place.segment == number &&
         std::uint64_t{found->second.place.page} * kPageBytes == entry.offset;
}

void SegmentTier::add_used(Held& held, std::int64_t bytes) {
  held.alive_bytes += static_cast<std::uint64_t>(bytes);
  used_bytes_ += static_cast<std::uint64_t>(bytes);
  if (metrics_ != nullptr) metrics_->add(options_.bytes_metric, bytes);
}

std::uint64_t SegmentTier::used_bytes() const { return used_bytes_; }

std::uint64_t SegmentTier::allowed_bytes() const { return allowed_bytes_; }

std::uint64_t SegmentTier::records() const {
  const MutexLock lock(mutex_);
  return records_.size();
}

std::uint64_t SegmentTier::segments() const {
  const MutexLock lock(mutex_);
  return static_cast<std::uint64_t>(std::ranges::count_if(
      segments_, [](const auto& s) { return s != nullptr; }));
}

}  // namespace leat
