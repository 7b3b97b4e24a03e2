// The part of SegmentTier that goes by other writers: sees what they wrote,
// takes over what dead ones left, and shares the limit with live ones.

#include "leat/cache/segment_tier.h"

#include <fmt/format.h>
#include <sys/file.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "leat/cache/held_segment.h"
#include "leat/runtime/log.h"

namespace leat {
namespace {

/// So often a writer asks for more while it fills its share.
constexpr std::uint64_t kLeasesOfAShare = 32;

}  // namespace

void SegmentTier::catch_up() {
  const MutexLock lock(writing_);
  for (std::uint32_t i = 0; i < segment_count(); ++i) {
    if (!reading_health_.may_try()) return;
    const auto held = held_at(i);
    if (held != nullptr && !held->is_mine) follow(i);
  }
}

void SegmentTier::refresh() {
  const MutexLock lock(writing_);
  punch_given_up();
  // Segments that cannot be listed now will be listed the next time.
  (void)learn_segments();
  share_limit();
  shed_strangers();
  return_lease();
}

/// Frees records above the share that nobody has claimed.
void SegmentTier::shed_strangers() {
  if (drop_strangers(strangers_, 0)) return;
  // None of the records that ranks of our own job have left has to go: those
  // ranks are gone.
  if (has_joiners_ || is_over_limit_) (void)drop_strangers(own_strangers_, 0);
}

void SegmentTier::set_share(std::optional<std::uint64_t> bytes) {
  const MutexLock lock(writing_);
  share_ = bytes;
  (void)learn_segments();  // As refresh().
  share_limit();
  if (!drop_strangers(strangers_, 0)) (void)drop_strangers(own_strangers_, 0);
  return_lease();
}

Result<void> SegmentTier::learn_segments() {
  LEAT_TRY(const std::vector<std::uint64_t> ids, files_->list());
  const std::set<std::uint64_t> there(ids.begin(), ids.end());
  std::set<std::uint64_t> known;
  for (std::uint32_t i = 0; i < segment_count(); ++i) {
    const auto held = held_at(i);
    if (held == nullptr) continue;
    const std::uint64_t id = held->segment.header().id;
    known.insert(id);
    if (held->is_mine) continue;
    if (!there.contains(id)) {
      forget_segment(i);
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

void SegmentTier::meet_segment(std::uint64_t id) {
  Result<SegmentFiles::Opened> file = files_->open(id);
  if (file && reclaim_damaged(id, *file)) return;
  std::optional<Segment> segment;
  if (file) segment = Segment::open(*std::move(file), ops_);
  // A copy under another name would be taken for the original.
  if (!segment || segment->header().id != id) {
    // Not for us, or a live writer's: its room is taken all the same.
    unread_bytes_ += files_->allocated_bytes(id);
    return;
  }
  segment->map(options_.segment_bytes);
  const std::uint32_t number =
      add_segment(std::make_shared<Held>(*std::move(segment)));
  follow(number);
  try_take_over(number);
}

/// Removes it if its header is damaged and nobody writes it: nothing in it can
/// be found again.
bool SegmentTier::reclaim_damaged(std::uint64_t id,
                                  const SegmentFiles::Opened& file) {
  const int fd = file.fd.get();
  const auto is_damaged = [&] {
    return Segment::state_of(fd, ops_) == FileState::kDamaged;
  };
  if (!file.is_writable || !is_damaged() || !try_lock_segment(fd)) return false;
  // Its writer may have been writing it just now.
  if (!is_damaged() || files_->is_removed(fd)) {
    (void)::flock(fd, LOCK_UN);
    return false;
  }
  log_warning(fmt::format(
      "a segment in {} has a damaged header: it was removed, and what it held "
      "is fetched again; if it happens often, look at the disk",
      files_->where()));
  if (metrics_ != nullptr) metrics_->add(Metric::kCacheBadRecords, 1);
  files_->remove(id);
  return true;
}

void SegmentTier::follow(std::uint32_t number) {
  const auto held = held_at(number);
  const Result<std::uint64_t> bad = held->segment.follow(
      [&](const RecordEntry& entry)
          LEAT_REQUIRES(writing_) { hear(number, entry); });
  if (!bad) {
    reading_health_.failed(bad.error().message());
  } else if (*bad != 0 && metrics_ != nullptr) {
    metrics_->add(Metric::kCacheBadRecords, static_cast<std::int64_t>(*bad));
  }
}

void SegmentTier::hear(std::uint32_t number, const RecordEntry& entry) {
  const Place place{
      .segment = number,
      .page = static_cast<std::uint32_t>(entry.offset / kPageBytes),
      .length_bytes = static_cast<std::uint32_t>(entry.length_bytes),
      .body_crc = entry.body_crc};
  const MutexLock lock(mutex_);
  Held& held = *segments_[number];
  const std::uint64_t cost = record_cost(entry.length_bytes);
  if (entry.kind == RecordEntry::Kind::kPut) {
    if (!held.is_mine) held.alive_bytes += cost;
    records_.try_emplace(entry.key, Known{place});  // Any copy will do.
    return;
  }
  if (!held.is_mine) {
    held.alive_bytes -= std::min<std::uint64_t>(cost, held.alive_bytes);
  }
  const auto found = records_.find(entry.key);
  if (found != records_.end() && found->second.place.segment == number &&
      found->second.place.page == place.page) {
    records_.erase(found);
  }
}

// A rank that holds more than its share would part with it, while the others
// begin with nothing. So each takes the segments that fit; once all are here,
// those that have room take the rest.
bool SegmentTier::may_take_over(const Held& held) const {
  if (options_.expected_writers == 1) return true;
  const std::uint64_t share = options_.limit_bytes / options_.expected_writers;
  if (used_bytes_ + held.alive_bytes <= share) return true;
  return live_writers_ >= options_.expected_writers &&
         (used_bytes_ < share || is_over_limit_);
}

void SegmentTier::try_take_over(std::uint32_t number) {
  const auto held = held_at(number);
  Segment& segment = held->segment;
  if (!segment.is_writable() || !try_lock_segment(segment.fd())) return;
  if (!may_take_over(*held)) {
    held->left_of = segment.header_now().owner;
    (void)::flock(segment.fd(), LOCK_UN);
    return;
  }
  // Its former owner may have removed it just before.
  if (files_->is_removed(segment.fd()) ||
      !segment.sign(owner_, leased_bytes_)) {
    (void)::flock(segment.fd(), LOCK_UN);
    return;
  }
  files_->taken_over(segment.header().id, segment.fd());
  follow(number);  // Read the last changes of its writer.
  count_as_mine(number);
}

void SegmentTier::count_as_mine(std::uint32_t number) {
  const auto held = held_at(number);
  std::vector<RecordEntry> alive;
  std::uint64_t bytes = 0;
  std::uint64_t of_own_source = 0;
  (void)held->segment.scan([&](const RecordEntry& entry) {
    if (!is_at(entry.key, number, entry)) return;
    if (entry.kind != RecordEntry::Kind::kPut) return;
    bytes += record_cost(entry.length_bytes);
    alive.push_back(entry);
    const bool is_own = entry.source == options_.source;
    (is_own ? own_strangers_ : strangers_).push_back(entry.key);
    of_own_source += is_own ? 1 : 0;
  });
  {
    const MutexLock lock(mutex_);
    held->is_mine = true;
    held->alive_bytes = 0;
    taken_over_ += of_own_source;
    add_used(*held, static_cast<std::int64_t>(bytes));
  }
  find_out_if_holes_work(*held);
  punch_gaps(*held, std::move(alive));
  tidy(number);
}

void SegmentTier::share_limit() {
  struct Writer {
    std::uint64_t leased_bytes = 0;
    std::uint64_t bytes = 0;
    bool is_gone = false;
  };
  std::map<std::uint64_t, Writer> others;
  for (std::uint32_t i = 0; i < segment_count(); ++i) {
    const auto held = held_at(i);
    if (held == nullptr || held->is_mine) continue;
    // Taken over by another, it has another owner.
    const SegmentHeader header = held->segment.header_now();
    Writer& writer = others[header.owner];
    // While another rank looks at a segment, its lock says nothing.
    writer.is_gone = writer.is_gone || held->left_of == header.owner;
    writer.leased_bytes = std::max(writer.leased_bytes, header.leased_bytes);
    // By what their records cost, as ours; more if there is what nobody counts.
    const std::uint64_t allocated = held->segment.allocated_bytes();
    writer.bytes += std::max<std::uint64_t>(
        held->alive_bytes,
        allocated - std::min(allocated, held->segment.index_bytes()));
  }
  const std::uint64_t limit = options_.limit_bytes;
  std::uint64_t free_bytes = limit - std::min(limit, unread_bytes_);
  live_writers_ = 1;
  for (const auto& [owner, writer] : others) {
    if (!writer.is_gone) ++live_writers_;
    // Room that the dead leased and did not write is nobody's.
    const std::uint64_t leased = writer.is_gone ? 0 : writer.leased_bytes;
    free_bytes -= std::min(free_bytes, std::max(leased, writer.bytes));
  }
  is_over_limit_ = used_bytes_ > free_bytes;
  has_joiners_ = live_writers_ > options_.expected_writers;
  const std::uint64_t shares =
      std::max<std::uint64_t>(live_writers_, options_.expected_writers);
  const std::uint64_t allowed =
      std::min(share_.value_or(limit / shares), free_bytes);
  const std::uint64_t before = allowed_bytes_.exchange(allowed);
  if (metrics_ != nullptr) {
    metrics_->add(
        options_.allowed_metric,
        static_cast<std::int64_t>(allowed) - static_cast<std::int64_t>(before));
  }
}

/// True if it has segments of its own.
bool SegmentTier::has_segments() const {
  const MutexLock lock(mutex_);
  return std::ranges::any_of(segments_, [](const auto& held) {
    return held != nullptr && held->is_mine;
  });
}

// The bytes that are held, and a little more that may be written without asking
// again. A joiner has to wait for room that is leased and not used.
std::uint64_t SegmentTier::most_leased() const {
  const std::uint64_t ahead = used_bytes_ + allowed_bytes_ / kLeasesOfAShare;
  return std::max(used_bytes_.load(), std::min(allowed_bytes_.load(), ahead));
}

// Two who see the same room free would both take it: so who wants more says so
// in its headers first, one at a time, and all others count that as taken.
bool SegmentTier::lease(std::uint64_t bytes) {
  const std::optional<OwnedFd> lock = files_->lock_leases();
  if (!lock) {
    writing_health_.failed("another process does not give up its lock");
    return false;
  }
  if (!learn_segments()) return false;
  share_limit();
  const std::uint64_t wanted = used_bytes_ + bytes;
  if (wanted > allowed_bytes_) return false;
  return publish_lease(std::max(wanted, most_leased()));
}

/// Gives back the part of the lease that is not needed any more.
void SegmentTier::return_lease() {
  if (!writing_health_.may_try()) return;
  (void)publish_lease(std::min(leased_bytes_, most_leased()));
}

bool SegmentTier::publish_lease(std::uint64_t bytes) {
  bool is_published = true;
  for (std::uint32_t i = 0; i < segment_count(); ++i) {
    const auto held = held_at(i);
    if (held == nullptr || !held->is_mine) continue;
    const Result<void> written = held->segment.sign(owner_, bytes);
    if (written) continue;
    writing_health_.failed(written.error().message());
    is_published = false;
  }
  // If a header could not be lowered, others still count its higher value.
  if (is_published || bytes < leased_bytes_) leased_bytes_ = bytes;
  return is_published;
}

}  // namespace leat
