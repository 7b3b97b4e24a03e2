// Two locks. `writing_` is held by whoever changes files or the list of
// segments: one at a time, for as long as the I/O takes. `mutex_` guards the
// map of records, and is never held across I/O: so a reader waits for no
// writer.
//
// A reader works with a copy of a record's place and a share of its segment, so
// the record may be punched and the file unlinked under it: the checksum then
// fails, and that is a miss.

#include "leat/cache/segment_tier.h"

#include <fmt/format.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <random>
#include <set>
#include <utility>

#include "leat/base/buffer.h"
#include "leat/base/units.h"
#include "leat/runtime/log.h"

namespace leat {
namespace {

/// A tier slower than this is worse than any store.
constexpr Nanoseconds kSlow = std::chrono::seconds(2);
/// What a file may take beyond its records before its gaps are punched: index
/// pages, and the file system's own.
constexpr std::uint64_t kSlackBytes = kMiB;

std::uint64_t draw() {
  std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}

SegmentTierOptions chosen(SegmentTierOptions options) {
  if (options.segment_bytes == 0) {
    options.segment_bytes =
        std::clamp(options.limit_bytes / 32, 4 * kMiB, kGiB);
  }
  return options;
}

std::uint32_t entries_for(std::uint64_t segment_bytes) {
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(
      2 * segment_bytes / kPageBytes, 64, kMostEntries));
}

}  // namespace

/// A segment, and what this tier knows about it.
struct SegmentTier::Held {
  explicit Held(Segment of) : segment(std::move(of)) {}
  Segment segment;
  bool is_mine = false;      // Changes once, under `writing_` and `mutex_`.
  bool is_emptying = false;  // Nothing new goes into it.
  std::atomic<std::uint64_t> alive_bytes = 0;  // By record_cost().
};

SegmentTier::SegmentTier(std::unique_ptr<SegmentFiles> files,
                         const SegmentTierOptions& options, FileOps& ops,
                         const Clock& clock, Metrics* metrics)
    : options_(chosen(options)),
      files_(std::move(files)),
      ops_(ops),
      clock_(clock),
      metrics_(metrics),
      owner_(draw()),
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
  (void)tier->drop_strangers(tier->strangers_, 0);
  (void)tier->drop_strangers(tier->own_strangers_, 0);
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

// --- looking up --------------------------------------------------------------

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
  const int error =
      held->segment.read(std::uint64_t{place.page} * kPageBytes, into);
  const Nanoseconds took = clock_.now() - before;
  if (took > kSlow) {
    reading_health_.failed(fmt::format("reading {} took {}",
                                       format_bytes(into.size()),
                                       format_duration(took)));
  }
  if (error != 0 && error != -ENODATA) {
    reading_health_.failed(file_error(error, "reading a record").message());
    return false;
  }
  if (error == 0 && record_crc(key, into) == place.body_crc) {
    reading_health_.worked();
    return true;
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

// --- writing -----------------------------------------------------------------

bool SegmentTier::insert(const RecordKey& key,
                         std::span<const std::byte> body) {
  if (body.empty() || body.size() > kMostRecordBytes) return false;
  if (!writing_health_.may_try()) return false;
  const MutexLock lock(writing_);
  punch_given_up();
  {
    const MutexLock map_lock(mutex_);
    const auto found = records_.find(key);
    if (found != records_.end()) {  // Another's cannot be freed by our plan.
      found->second.is_claimed =
          segments_[found->second.place.segment]->is_mine;
      return found->second.is_claimed;
    }
  }
  const std::uint64_t cost = record_cost(body.size());
  if (used_bytes_ + cost > allowed_bytes_) return false;
  const TimePoint before = clock_.now();
  Result<std::uint32_t> number = segment_for(body.size());
  Result<RecordEntry> entry =
      number ? held_at(*number)->segment.append(key, options_.source, body)
             : Result<RecordEntry>(number.error());
  const Nanoseconds took = clock_.now() - before;
  if (!entry) {
    writing_health_.failed(entry.error().message());
    return false;
  }
  if (took > kSlow) {
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
  const SegmentHeader header{
      .id = draw(),
      .owner = owner_,
      .entry_count = entries_for(options_.segment_bytes)};
  LEAT_TRY(SegmentFiles::Opened file, files_->create(header));
  std::optional<Segment> segment = Segment::open(std::move(file), ops_);
  if (!segment) {
    return Error(ErrorCode::kUnavailable, "a new segment cannot be read back");
  }
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

// --- freeing -----------------------------------------------------------------

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
  if (found == records_.end()) return false;
  if (!segments_[found->second.place.segment]->is_mine) return false;
  found->second.is_claimed = true;
  return true;
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
    give_up(entry.key, place);  // Of a hostile length, for one.
    return true;
  }
  Buffer body(entry.length_bytes);
  if (held->segment.read(entry.offset, body.span()) != 0 ||
      record_crc(entry.key, body.span()) != entry.body_crc) {
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

// --- the others --------------------------------------------------------------

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
  (void)learn_segments();  // What cannot be listed now will be the next time.
  share_limit();
  (void)drop_strangers(strangers_, 0);
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
  for (const std::uint64_t id : there) {
    if (!known.contains(id)) meet_segment(id);
  }
  return {};
}

void SegmentTier::meet_segment(std::uint64_t id) {
  Result<SegmentFiles::Opened> file = files_->open(id);
  if (!file) return;  // Removed meanwhile, or not for us.
  std::optional<Segment> segment = Segment::open(*std::move(file), ops_);
  // A copy under another name would be taken for the original.
  if (!segment || segment->header().id != id) return;
  const std::uint32_t number =
      add_segment(std::make_shared<Held>(*std::move(segment)));
  follow(number);
  try_take_over(number);
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

void SegmentTier::try_take_over(std::uint32_t number) {
  const auto held = held_at(number);
  Segment& segment = held->segment;
  if (!segment.is_writable() || !try_lock_segment(segment.fd())) return;
  // Whoever had it may have removed it just before.
  if (files_->is_removed(segment.fd()) || !segment.take_over(owner_)) {
    (void)::flock(segment.fd(), LOCK_UN);
    return;
  }
  files_->taken_over(segment.header().id, segment.fd());
  follow(number);  // What its writer did last.
  count_as_mine(number);
}

void SegmentTier::count_as_mine(std::uint32_t number) {
  const auto held = held_at(number);
  std::vector<RecordEntry> alive;
  std::uint64_t bytes = 0;
  (void)held->segment.scan([&](const RecordEntry& entry) {
    if (!is_at(entry.key, number, entry)) return;
    if (entry.kind != RecordEntry::Kind::kPut) return;
    bytes += record_cost(entry.length_bytes);
    alive.push_back(entry);
    (entry.source == options_.source ? own_strangers_ : strangers_)
        .push_back(entry.key);
  });
  {
    const MutexLock lock(mutex_);
    held->is_mine = true;
    held->alive_bytes = 0;
    add_used(*held, static_cast<std::int64_t>(bytes));
  }
  find_out_if_holes_work(*held);
  punch_gaps(*held, std::move(alive));
  tidy(number);
}

// What a dead writer put without an entry, or dropped without a hole.
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

void SegmentTier::share_limit() {
  std::set<std::uint64_t> writers;
  std::uint64_t others_bytes = 0;
  for (std::uint32_t i = 0; i < segment_count(); ++i) {
    const auto held = held_at(i);
    if (held == nullptr || held->is_mine) continue;
    // By what their records cost, as ours; more if there is what nobody counts.
    const std::uint64_t allocated = held->segment.allocated_bytes();
    others_bytes += std::max<std::uint64_t>(
        held->alive_bytes,
        allocated - std::min(allocated, held->segment.index_bytes()));
    SegmentBlock block;  // Taken over by another, it has another owner.
    if (held->segment.read(0, block) != 0) continue;
    if (const auto header = parse_header(block)) writers.insert(header->owner);
  }
  const std::uint64_t limit = options_.limit_bytes;
  const std::uint64_t shares =
      std::max<std::uint64_t>(writers.size() + 1, options_.expected_writers);
  const std::uint64_t allowed = std::min(share_.value_or(limit / shares),
                                         limit - std::min(limit, others_bytes));
  const std::uint64_t before = allowed_bytes_.exchange(allowed);
  if (metrics_ != nullptr) {
    metrics_->add(
        options_.allowed_metric,
        static_cast<std::int64_t>(allowed) - static_cast<std::int64_t>(before));
  }
}

void SegmentTier::set_share(std::optional<std::uint64_t> bytes) {
  const MutexLock lock(writing_);
  share_ = bytes;
  (void)learn_segments();  // As refresh().
  share_limit();
  if (!drop_strangers(strangers_, 0)) (void)drop_strangers(own_strangers_, 0);
}

// --- small things ------------------------------------------------------------

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
