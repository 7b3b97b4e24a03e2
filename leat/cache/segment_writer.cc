#include "leat/cache/segment_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "leat/base/buffer.h"
#include "leat/base/errors.h"
#include "leat/base/units.h"
#include "leat/runtime/log.h"

namespace leat {
namespace {

/// The bytes that a file may take beyond its records before its gaps are
/// punched: index pages, and the file system's own.
constexpr std::uint64_t kSlackBytes = kMiB;

std::uint32_t entries_for(std::uint64_t segment_bytes) {
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(
      2 * segment_bytes / kPageBytes, 64, kMostEntries));
}

RecordEntry drop_of(const RecordKey& key, const RecordPlace& place) {
  return {.kind = RecordEntry::Kind::kDrop,
          .key = key,
          .source = 0,
          .offset = std::uint64_t{place.page} * kPageBytes,
          .length_bytes = place.length_bytes,
          .body_crc = place.body_crc};
}

}  // namespace

SegmentWriter::SegmentWriter(const Parts& parts)
    : to_(parts), owner_(draw_id()) {}

// --- putting in --------------------------------------------------------------

Result<std::uint32_t> SegmentWriter::segment_for(std::uint64_t length_bytes) {
  const auto fits = [&](std::uint32_t number) {
    const auto held = to_.records.at(number);
    return held != nullptr && held->is_mine && !held->is_emptying &&
           held->segment.has_room(length_bytes, to_.options.segment_bytes);
  };
  if (active_ && fits(*active_)) return *active_;
  const std::optional<std::uint32_t> before = std::exchange(active_, {});
  for (std::uint32_t i = 0; i < to_.records.end() && !active_; ++i) {
    if (fits(i)) active_ = i;
  }
  if (!active_) {
    LEAT_TRY(active_, make_segment());
  }
  const std::uint32_t found = *active_;
  if (before) tidy(*before);  // May make another one active.
  return found;
}

Result<std::uint32_t> SegmentWriter::make_segment() {
  if (!to_.records.has_mine()) to_.share.set_leased(0);  // Nobody could see it.
  const SegmentHeader header{
      .id = draw_id(),
      .owner = owner_,
      .entry_count = entries_for(to_.options.segment_bytes),
      .leased_bytes = to_.share.leased_bytes()};
  LEAT_TRY(SegmentFiles::Opened file, to_.files.create(header));
  std::optional<Segment> segment = Segment::open(std::move(file), to_.ops);
  if (!segment) {
    return unavailable("a new segment cannot be read back");
  }
  segment->map(to_.options.segment_bytes);
  auto held = std::make_shared<HeldSegment>(*std::move(segment));
  held->is_mine = true;
  find_out_if_holes_work(*held);
  ++files_made_;
  return to_.records.add(std::move(held));
}

void SegmentWriter::find_out_if_holes_work(HeldSegment& held) {
  const std::uint64_t end = held.segment.end();
  const int error = to_.ops.punch(held.segment.fd(), end, kPageBytes);
  const bool works = error != -EOPNOTSUPP && error != -ENOSYS;
  if (!works && can_drop_.exchange(false)) {
    log_warning(
        fmt::format("{} cannot punch holes in files: the {} tier keeps what "
                    "comes first and frees nothing",
                    to_.files.where(), to_.options.name));
  }
}

Result<void> SegmentWriter::append(std::uint32_t number, const RecordKey& key,
                                   std::span<const std::byte> body) {
  LEAT_TRY(const RecordEntry entry, to_.records.at(number)->segment.append(
                                        key, to_.options.source, body));
  to_.records.wrote(number, entry);
  return {};
}

// --- taking out --------------------------------------------------------------

bool SegmentWriter::drop(const RecordKey& key) {
  const std::optional<FoundRecord> found = to_.records.take(key);
  if (!found) return false;
  const Result<void> dropped =
      found->held->segment.drop(drop_of(key, found->place));
  if (!dropped) to_.health.failed(dropped.error().message());
  tidy(found->place.segment);
  return true;
}

void SegmentWriter::punch_given_up() {
  for (const auto& [key, place] : to_.records.take_given_up()) {
    const auto held = to_.records.at(place.segment);
    if (held == nullptr) continue;
    (void)held->segment.drop(drop_of(key, place));
    tidy(place.segment);
  }
}

void SegmentWriter::forget_segment(std::uint32_t number) {
  to_.records.forget_segment(number);
  if (active_ == number) active_.reset();
}

// A segment with little alive costs a file and an index to walk.
void SegmentWriter::tidy(std::uint32_t number) {
  const auto held = to_.records.at(number);
  if (held == nullptr || !held->is_mine || held->is_emptying) return;
  if (active_ == number || !to_.health.may_try()) return;
  const std::uint64_t written =
      held->segment.end() - held->segment.header().data_begin();
  if (held->alive_bytes * 4 >= written) return;
  held->is_emptying = true;
  compact(number);
}

void SegmentWriter::compact(std::uint32_t number) {
  const auto held = to_.records.at(number);
  std::vector<RecordEntry> alive;
  const Result<std::uint64_t> scanned =
      held->segment.scan([&](const RecordEntry& entry) {
        if (to_.records.is_at(entry.key, number, entry)) alive.push_back(entry);
      });
  bool is_empty = scanned.has_value();
  for (const RecordEntry& entry : alive) {
    is_empty = is_empty && move_record(number, entry);
  }
  if (!is_empty) {  // Full or failing: it is left as it is, and still read.
    to_.health.failed("records could not be copied on");
    held->is_emptying = false;
    return;
  }
  to_.files.remove(held->segment.header().id);
  forget_segment(number);
}

/// Copies a record to the active segment. False if that failed.
bool SegmentWriter::move_record(std::uint32_t from, const RecordEntry& entry) {
  const auto held = to_.records.at(from);
  const RecordPlace place = place_of(from, entry);
  if (entry.offset + entry.length_bytes > held->segment.file_bytes()) {
    to_.records.give_up(entry.key, place);  // Its length may be hostile.
    return true;
  }
  Buffer body(entry.length_bytes);
  if (held->segment.read_body(entry.key, entry.offset, entry.body_crc,
                              body.span()) != 0) {
    to_.records.give_up(entry.key, place);
    return true;
  }
  const Result<std::uint32_t> to = segment_for(body.size());
  if (!to) return false;
  const Result<RecordEntry> moved =
      to_.records.at(*to)->segment.append(entry.key, entry.source, body.span());
  if (!moved) return false;
  RecordPlace there = place;
  there.segment = *to;
  there.page = static_cast<std::uint32_t>(moved->offset / kPageBytes);
  to_.records.moved(entry.key, place, there);
  return true;
}

void SegmentWriter::took_over(std::uint32_t number,
                              std::vector<RecordEntry> alive) {
  const auto held = to_.records.at(number);
  find_out_if_holes_work(*held);
  punch_gaps(*held, std::move(alive));
  tidy(number);
}

// Punches out bodies that a dead writer wrote without an entry, or dropped
// without a hole.
void SegmentWriter::punch_gaps(HeldSegment& held,
                               std::vector<RecordEntry> alive) {
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

bool SegmentWriter::publish_lease(std::uint64_t bytes) {
  bool is_published = true;
  for (std::uint32_t i = 0; i < to_.records.end(); ++i) {
    const auto held = to_.records.at(i);
    if (held == nullptr || !held->is_mine) continue;
    const Result<void> written = held->segment.sign(owner_, bytes);
    if (written) continue;
    to_.health.failed(written.error().message());
    is_published = false;
  }
  // Others believe a lease that could not be lowered in a header.
  if (is_published || bytes < to_.share.leased_bytes()) {
    to_.share.set_leased(bytes);
  }
  return is_published;
}

}  // namespace leat
