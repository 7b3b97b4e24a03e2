#include "leat/cache/segment_follower.h"

#include <fmt/format.h>
#include <sys/file.h>

#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "leat/runtime/log.h"

namespace leat {

void SegmentFollower::catch_up() {
  for (std::uint32_t i = 0; i < to_.records.end(); ++i) {
    if (!to_.health.may_try()) return;
    const auto held = to_.records.at(i);
    if (held != nullptr && !held->is_mine) follow(i);
  }
}

Result<void> SegmentFollower::learn_segments() {
  LEAT_TRY(const std::vector<std::uint64_t> ids, to_.files.list());
  const std::set<std::uint64_t> there(ids.begin(), ids.end());
  std::set<std::uint64_t> known;
  for (std::uint32_t i = 0; i < to_.records.end(); ++i) {
    const auto held = to_.records.at(i);
    if (held == nullptr) continue;
    const std::uint64_t id = held->segment.header().id;
    known.insert(id);
    if (held->is_mine) continue;
    // The last list of a rank that is gone still has those that were removed.
    if (!there.contains(id) || to_.files.is_removed(held->segment.fd())) {
      to_.writer.forget_segment(i);
      continue;
    }
    follow(i);
    try_take_over(i);
  }
  unread_bytes_ = 0;
  for (const std::uint64_t id : there) {
    if (!known.contains(id)) meet_segment(id);
  }
  return {};
}

void SegmentFollower::meet_segment(std::uint64_t id) {
  Result<SegmentFiles::Opened> file = to_.files.open(id);
  if (file && reclaim_damaged(id, *file)) return;
  std::optional<Segment> segment;
  if (file) segment = Segment::open(*std::move(file), to_.ops);
  // A copy under another name would be taken for the original.
  if (!segment || segment->header().id != id) {
    // Not for us, or a live writer's: its room is taken all the same.
    unread_bytes_ += to_.files.allocated_bytes(id);
    return;
  }
  segment->map(to_.options.segment_bytes);
  const std::uint32_t number =
      to_.records.add(std::make_shared<HeldSegment>(*std::move(segment)));
  follow(number);
  try_take_over(number);
}

/// Removes it if its header is damaged and nobody writes it: nothing in it can
/// be found again.
bool SegmentFollower::reclaim_damaged(std::uint64_t id,
                                      const SegmentFiles::Opened& file) {
  const int fd = file.fd.get();
  const auto is_damaged = [&] {
    return Segment::state_of(fd, to_.ops) == FileState::kDamaged;
  };
  if (!file.is_writable || !is_damaged() || !try_lock_segment(fd)) return false;
  // Its writer may have been writing it just now.
  if (!is_damaged() || to_.files.is_removed(fd)) {
    (void)::flock(fd, LOCK_UN);
    return false;
  }
  log_warning(fmt::format(
      "a segment in {} has a damaged header: it was removed, and what it held "
      "is fetched again; if it happens often, look at the disk",
      to_.files.where()));
  count_bad(1);
  to_.files.remove(id);
  return true;
}

void SegmentFollower::follow(std::uint32_t number) {
  const auto held = to_.records.at(number);
  const Result<std::uint64_t> bad = held->segment.follow(
      [&](const RecordEntry& entry) { to_.records.hear(number, entry); });
  if (!bad) {
    to_.health.failed(bad.error().message());
  } else if (*bad != 0) {
    count_bad(*bad);
  }
}

void SegmentFollower::count_bad(std::uint64_t records) {
  if (to_.metrics == nullptr) return;
  to_.metrics->add(Metric::kCacheBadRecords,
                   static_cast<std::int64_t>(records));
}

void SegmentFollower::try_take_over(std::uint32_t number) {
  const auto held = to_.records.at(number);
  Segment& segment = held->segment;
  if (!segment.is_writable() || !try_lock_segment(segment.fd())) return;
  if (!to_.share.may_take_over(*held)) {
    held->left_of = segment.header_now().owner;
    (void)::flock(segment.fd(), LOCK_UN);
    return;
  }
  // Its former writer may have removed it just before.
  if (to_.files.is_removed(segment.fd()) ||
      !segment.sign(to_.writer.owner(), to_.share.leased_bytes())) {
    (void)::flock(segment.fd(), LOCK_UN);
    return;
  }
  to_.files.taken_over(segment.header().id, segment.fd());
  follow(number);  // Its writer's last entries.
  count_as_mine(number);
}

void SegmentFollower::count_as_mine(std::uint32_t number) {
  const auto held = to_.records.at(number);
  std::vector<RecordEntry> alive;
  std::uint64_t bytes = 0;
  std::uint64_t of_own_source = 0;
  (void)held->segment.scan([&](const RecordEntry& entry) {
    if (!to_.records.is_at(entry.key, number, entry)) return;
    if (entry.kind != RecordEntry::Kind::kPut) return;
    bytes += record_cost(entry.length_bytes);
    alive.push_back(entry);
    const bool is_own = entry.source == to_.options.source;
    (is_own ? own_strangers_ : strangers_).push_back(entry.key);
    of_own_source += is_own ? 1 : 0;
  });
  to_.records.count_as_mine(number, bytes, of_own_source);
  to_.writer.took_over(number, std::move(alive));
}

}  // namespace leat
