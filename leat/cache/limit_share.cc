#include "leat/cache/limit_share.h"

#include <algorithm>
#include <map>

namespace leat {
namespace {

/// The number of times a writer asks for more while it fills its share.
constexpr std::uint64_t kLeasesOfAShare = 32;

/// Another writer, as its segments show it.
struct Writer {
  std::uint64_t leased_bytes = 0;
  std::uint64_t bytes = 0;
  bool is_gone = false;
};

std::map<std::uint64_t, Writer> others_in(const RecordMap& records) {
  std::map<std::uint64_t, Writer> others;
  for (std::uint32_t i = 0; i < records.end(); ++i) {
    const auto held = records.at(i);
    if (held == nullptr || held->is_mine) continue;
    // A segment that was taken over has a new owner.
    const SegmentHeader header = held->segment.header_now();
    Writer& writer = others[header.owner];
    // While another rank inspects a segment, its lock does not show whether the
    // owner is gone.
    writer.is_gone = writer.is_gone || held->left_of == header.owner;
    writer.leased_bytes = std::max(writer.leased_bytes, header.leased_bytes);
    // Counts the cost of the writer's live records, as we count that of ours.
    // If other bytes of the segment add up to more, counts those.
    const std::uint64_t allocated = held->segment.allocated_bytes();
    writer.bytes += std::max<std::uint64_t>(
        held->alive_bytes,
        allocated - std::min(allocated, held->segment.index_bytes()));
  }
  return others;
}

}  // namespace

LimitShare::~LimitShare() {
  if (metrics_ == nullptr) return;
  metrics_->add(options_.allowed_metric,
                -static_cast<std::int64_t>(allowed_bytes_.load()));
}

void LimitShare::deal(std::uint64_t unread_bytes) {
  const std::uint64_t limit = options_.limit_bytes;
  std::uint64_t free_bytes = limit - std::min(limit, unread_bytes);
  live_writers_ = 1;
  for (const auto& [owner, writer] : others_in(records_)) {
    if (!writer.is_gone) ++live_writers_;
    // Room that a dead writer leased and did not use belongs to nobody.
    const std::uint64_t leased = writer.is_gone ? 0 : writer.leased_bytes;
    free_bytes -= std::min(free_bytes, std::max(leased, writer.bytes));
  }
  is_over_limit_ = records_.used_bytes() > free_bytes;
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

bool LimitShare::may_take_over(const HeldSegment& held) const {
  if (options_.expected_writers == 1) return true;
  const std::uint64_t share = options_.limit_bytes / options_.expected_writers;
  const std::uint64_t used = records_.used_bytes();
  if (used + held.alive_bytes <= share) return true;
  return live_writers_ >= options_.expected_writers &&
         (used < share || is_over_limit_);
}

std::uint64_t LimitShare::most_leased() const {
  const std::uint64_t used = records_.used_bytes();
  const std::uint64_t ahead = used + allowed_bytes_ / kLeasesOfAShare;
  return std::max(used, std::min(allowed_bytes_.load(), ahead));
}

}  // namespace leat
