#include "leat/cache/job_uses.h"

#include <algorithm>

namespace leat {

PlannedRecord JobUses::planned(const CacheUse& use) const {
  const bool stays = keeps_bytes_ && !use.is_made;
  return {.key = use.key,
          .next_use = stays ? kAlways : of_this_job(use.hint.next_use),
          .length_bytes = static_cast<std::uint32_t>(use.bytes.size()),
          .may_last = use.has_version,
          .sample = use.hint.sample ? SampleId{*use.hint.sample}
                                    : PlannedRecord::kNoSample};
}

// A record that this job never reads again may be read by another job in a
// later epoch, or by one that starts later.
AccessTime JobUses::of_this_job(AccessTime told) const {
  constexpr AccessTime kAfterAllElse = kNever - 2;  // One less marks a copy.
  if (board_ == nullptr || told != kNever) return told;
  return kAfterAllElse;
}

AccessTime JobUses::of_any(const CacheUse& use,
                           const PlannedRecord& own) const {
  if (!use.hint.sample) return own.next_use;
  return of_any(own.next_use, *use.hint.sample, use.hint.now);
}

// On this job's clock: other jobs are assumed to advance as fast as this one. A
// record that several jobs want in their running epochs counts as used slightly
// sooner, since it serves more of them.
AccessTime JobUses::of_any(AccessTime own, std::uint64_t sample,
                           AccessTime now) const {
  constexpr std::uint64_t kTurnsAJob = 32;
  if (board_ == nullptr || own == kAlways) return own;
  const auto wanted = board_->wanted({sample});
  if (!wanted) return own;
  const std::size_t others = board_->others();
  const std::uint64_t turns =
      now % epoch_time_ + wanted->turns +
      kTurnsAJob * (others - std::min<std::size_t>(others, wanted->jobs));
  const std::uint64_t epochs = now / epoch_time_;
  const std::uint64_t samples = board_->samples();
  return std::min(own,
                  (epochs + turns / samples) * epoch_time_ + turns % samples);
}

}  // namespace leat
