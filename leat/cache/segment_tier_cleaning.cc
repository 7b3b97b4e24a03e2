// The part of SegmentTier that gives room back beyond what drops free: segments
// with little alive, records that readers found bad, and half-done work of a
// dead writer.

#include "leat/cache/segment_tier.h"

#include <algorithm>
#include <utility>

#include "leat/base/buffer.h"
#include "leat/base/units.h"
#include "leat/cache/held_segment.h"

namespace leat {
namespace {

/// The room that a file may take beyond its records before its gaps are
/// punched: index pages, and the file system's own.
constexpr std::uint64_t kSlackBytes = kMiB;

}  // namespace

// A segment of which little is alive costs a file and an index to walk.
void SegmentTier::tidy(std::uint32_t number) {
  const auto held = held_at(number);
  if (held == nullptr || !held->is_mine || held->is_emptying) return;
  if (active_ == number || !writing_health_.may_try()) return;
  const std::uint64_t written =
      held->segment.end() - held->segment.header().data_begin();
  if (held->alive_bytes * 4 >= written) return;
  held->is_emptying = true;
  compact(number);
}

void SegmentTier::compact(std::uint32_t number) {
  const auto held = held_at(number);
  std::vector<RecordEntry> alive;
  const Result<std::uint64_t> scanned =
      held->segment.scan([&](const RecordEntry& entry) {
        if (is_at(entry.key, number, entry)) alive.push_back(entry);
      });
  bool is_empty = scanned.has_value();
  for (const RecordEntry& entry : alive) {
    is_empty = is_empty && move_record(number, entry);
  }
  if (!is_empty) {  // Full or failing: it stays as it is, and is read.
    writing_health_.failed("records could not be copied on");
    held->is_emptying = false;
    return;
  }
  files_->remove(held->segment.header().id);
  forget_segment(number);
}

/// Copies a record on. False if it could not be written.
bool SegmentTier::move_record(std::uint32_t from, const RecordEntry& entry) {
  const auto held = held_at(from);
  const Place place{
      .segment = from,
      .page = static_cast<std::uint32_t>(entry.offset / kPageBytes),
      .length_bytes = static_cast<std::uint32_t>(entry.length_bytes),
      .body_crc = entry.body_crc};
  if (entry.offset + entry.length_bytes > held->segment.file_bytes()) {
    give_up(entry.key, place);  // Such as an entry with a hostile length.
    return true;
  }
  Buffer body(entry.length_bytes);
  if (held->segment.read_body(entry.key, entry.offset, entry.body_crc,
                              body.span()) != 0) {
    give_up(entry.key, place);
    return true;
  }
  const Result<std::uint32_t> to = segment_for(body.size());
  if (!to) return false;
  const auto target = held_at(*to);
  const Result<RecordEntry> moved =
      target->segment.append(entry.key, entry.source, body.span());
  if (!moved) return false;
  const auto cost = static_cast<std::int64_t>(record_cost(body.size()));
  const MutexLock lock(mutex_);
  const auto found = records_.find(entry.key);
  if (found == records_.end() || found->second.place != place) return true;
  found->second.place = place;
  found->second.place.segment = *to;
  found->second.place.page =
      static_cast<std::uint32_t>(moved->offset / kPageBytes);
  add_used(*held, -cost);
  add_used(*target, cost);
  return true;
}

void SegmentTier::forget_segment(std::uint32_t number) {
  const MutexLock lock(mutex_);
  Held& held = *segments_[number];
  if (held.is_mine) {
    used_bytes_ -= held.alive_bytes;
    if (metrics_ != nullptr) {
      metrics_->add(options_.bytes_metric,
                    -static_cast<std::int64_t>(held.alive_bytes.load()));
    }
  }
  std::erase_if(records_, [&](const auto& record) {
    return record.second.place.segment == number;
  });
  std::erase_if(given_up_,
                [&](const auto& bad) { return bad.second.segment == number; });
  segments_[number] = nullptr;
  if (active_ == number) active_.reset();
}

void SegmentTier::punch_given_up() {
  std::vector<std::pair<RecordKey, Place>> bad;
  {
    const MutexLock lock(mutex_);
    bad.swap(given_up_);
  }
  for (const auto& [key, place] : bad) {
    const auto held = held_at(place.segment);
    if (held == nullptr) continue;
    (void)held->segment.drop({.kind = RecordEntry::Kind::kDrop,
                              .key = key,
                              .source = 0,
                              .offset = std::uint64_t{place.page} * kPageBytes,
                              .length_bytes = place.length_bytes,
                              .body_crc = place.body_crc});
    tidy(place.segment);
  }
}

// Punches records that a dead writer put without an entry, or dropped without a
// hole.
void SegmentTier::punch_gaps(Held& held, std::vector<RecordEntry> alive) {
  if (!can_drop_ ||
      held.segment.allocated_bytes() <= held.alive_bytes + kSlackBytes) {
    return;
  }
  std::sort(alive.begin(), alive.end(),
            [](const RecordEntry& a, const RecordEntry& b) {
              return a.offset < b.offset;
            });
  std::uint64_t at = held.segment.header().data_begin();
  for (const RecordEntry& entry : alive) {
    (void)held.segment.punch(at, std::max(at, entry.offset));
    at = std::max(at, entry.offset + whole_pages(entry.length_bytes));
  }
  // A torn body lies past the last entry's, and may be of any length.
  (void)held.segment.punch(
      at, std::max(at, held.segment.end()) + whole_pages(kMostRecordBytes));
}

}  // namespace leat
