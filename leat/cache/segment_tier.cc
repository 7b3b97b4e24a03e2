#include "leat/cache/segment_tier.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "leat/base/units.h"

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
      clock_(clock),
      metrics_(metrics),
      reading_health_(
          fmt::format("the {} tier in {}", options.name, files_->where()),
          clock, metrics),
      writing_health_(fmt::format("writing to the {} tier in {}", options.name,
                                  files_->where()),
                      clock, metrics),
      records_(options.bytes_metric, metrics),
      share_(options_, records_, metrics),
      writer_({.options = options_,
               .files = *files_,
               .ops = ops,
               .records = records_,
               .share = share_,
               .health = writing_health_}),
      follower_({.options = options_,
                 .files = *files_,
                 .ops = ops,
                 .records = records_,
                 .share = share_,
                 .writer = writer_,
                 .health = reading_health_,
                 .metrics = metrics}) {}

Result<std::unique_ptr<SegmentTier>> SegmentTier::open(
    std::unique_ptr<SegmentFiles> files, const SegmentTierOptions& options,
    FileOps& ops, const Clock& clock, Metrics* metrics) {
  std::unique_ptr<SegmentTier> tier(
      new SegmentTier(std::move(files), options, ops, clock, metrics));
  const MutexLock lock(tier->writing_);
  LEAT_TRY_VOID(tier->follower_.learn_segments());
  tier->share_.deal(tier->follower_.unread_bytes());
  if (Result<std::uint32_t> made = tier->writer_.segment_for(1); !made) {
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
  for (std::uint32_t i = 0; i < records_.end(); ++i) {
    const auto held = records_.at(i);
    if (held == nullptr || !held->is_mine) continue;
    if (held->alive_bytes == 0) files_->remove(held->segment.header().id);
  }
}

void SegmentTier::count(Metric metric) {
  if (metrics_ != nullptr) metrics_->add(metric, 1);
}

// --- reading -----------------------------------------------------------------

bool SegmentTier::may_hold(const RecordKey& key) const {
  return reading_health_.may_try() && holds(key);
}

std::optional<std::uint64_t> SegmentTier::length_of(
    const RecordKey& key) const {
  if (!reading_health_.may_try()) return std::nullopt;
  const auto found = records_.find(key);
  if (!found) return std::nullopt;
  return found->place.length_bytes;
}

bool SegmentTier::read(const RecordKey& key, std::span<std::byte> into) {
  if (!reading_health_.may_try()) return false;
  const std::optional<FoundRecord> found = records_.find(key);
  if (!found || found->place.length_bytes != into.size()) return false;
  const RecordPlace& place = found->place;
  const TimePoint before = clock_.now();
  const int error = found->held->segment.read_body(
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
  records_.give_up(key, place);
  return false;
}

// --- writing -----------------------------------------------------------------

bool SegmentTier::insert(const RecordKey& key,
                         std::span<const std::byte> body) {
  if (body.empty() || body.size() > kMostRecordBytes) return false;
  if (!writing_health_.may_try()) return false;
  const MutexLock lock(writing_);
  writer_.punch_given_up();
  if (const auto known = records_.claim(key)) return *known;
  const std::uint64_t cost = record_cost(body.size());
  if (!share_.has_room(cost)) return false;
  const TimePoint before = clock_.now();
  Result<std::uint32_t> number = writer_.segment_for(body.size());
  if (number && used_bytes() + cost > share_.leased_bytes()) {
    if (!lease(cost)) return false;
    // That has looked at what others did, and taken over what dead ones left.
    if (const auto known = records_.claim(key)) return *known;
    number = writer_.segment_for(body.size());
  }
  const Result<void> written = number ? writer_.append(*number, key, body)
                                      : Result<void>(number.error());
  const Nanoseconds took = clock_.now() - before;
  if (!written) {
    writing_health_.failed(written.error().message());
    return false;
  }
  if (took > TierHealth::kSlow) {
    writing_health_.failed("writing a record took " + format_duration(took));
  } else {
    writing_health_.worked();
  }
  count(Metric::kCacheInserts);
  return true;
}

void SegmentTier::drop(const RecordKey& key) {
  const MutexLock lock(writing_);
  drop_held(key);
}

void SegmentTier::drop_held(const RecordKey& key) {
  if (can_drop() && writer_.drop(key)) count(Metric::kCacheDrops);
}

// --- what an earlier run left ------------------------------------------------

bool SegmentTier::claim(const RecordKey& key) {
  return records_.claim(key).value_or(false);
}

bool SegmentTier::wants_strangers() const {
  return options_.expected_writers > 1 &&
         records_.are_claimed_by(options_.expected_writers);
}

bool SegmentTier::make_room(std::uint64_t bytes, bool of_own_source) {
  const MutexLock lock(writing_);
  return drop_strangers(follower_.strangers(), bytes) ||
         (of_own_source && drop_strangers(follower_.own_strangers(), bytes));
}

bool SegmentTier::drop_strangers(std::deque<RecordKey>& strangers,
                                 std::uint64_t bytes) {
  while (!share_.has_room(bytes)) {
    if (strangers.empty() || !can_drop()) return false;
    const RecordKey key = strangers.front();
    strangers.pop_front();
    if (!records_.is_claimed(key)) drop_held(key);
  }
  return true;
}

/// Drops what is above the share and nobody has claimed.
void SegmentTier::shed_strangers() {
  if (drop_strangers(follower_.strangers(), 0)) return;
  // Nothing has to go of what ranks of our own job have left: they are gone.
  if (share_.is_crowded()) (void)drop_strangers(follower_.own_strangers(), 0);
}

// --- other writers -----------------------------------------------------------

void SegmentTier::catch_up() {
  const MutexLock lock(writing_);
  follower_.catch_up();
}

void SegmentTier::refresh() {
  const MutexLock lock(writing_);
  writer_.punch_given_up();
  // A folder that cannot be listed now will be the next time.
  (void)follower_.learn_segments();
  share_.deal(follower_.unread_bytes());
  shed_strangers();
  return_lease();
}

void SegmentTier::set_share(std::optional<std::uint64_t> bytes) {
  const MutexLock lock(writing_);
  share_.set(bytes);
  (void)follower_.learn_segments();  // Like refresh().
  share_.deal(follower_.unread_bytes());
  if (!drop_strangers(follower_.strangers(), 0)) {
    (void)drop_strangers(follower_.own_strangers(), 0);
  }
  return_lease();
}

/// Takes room for `bytes` more; one writer at a time does.
bool SegmentTier::lease(std::uint64_t bytes) {
  const std::optional<OwnedFd> lock = files_->lock_leases();
  if (!lock) {
    writing_health_.failed("another process does not give up its lock");
    return false;
  }
  if (!follower_.learn_segments()) return false;
  share_.deal(follower_.unread_bytes());
  if (!share_.has_room(bytes)) return false;
  return writer_.publish_lease(
      std::max(used_bytes() + bytes, share_.most_leased()));
}

/// Gives back room that is not needed any more.
void SegmentTier::return_lease() {
  if (!writing_health_.may_try()) return;
  (void)writer_.publish_lease(
      std::min(share_.leased_bytes(), share_.most_leased()));
}

}  // namespace leat
