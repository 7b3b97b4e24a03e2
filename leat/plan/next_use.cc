// Both questions are one: when do these ranks first read a position of a run? A
// sample's run is its position, a block's is its window. An epoch is asked
// twice: its steps, and the padding behind its end, whose positions stand for
// those from 0 on again.

#include "leat/plan/next_use.h"

#include <fmt/core.h>

#include <algorithm>
#include <span>

#include "leat/base/check.h"
#include "leat/base/errors.h"

namespace leat {
namespace {

constexpr std::uint64_t kNoRead = kNever;

Result<Steps> steps_of(const NextUseOptions& options, std::uint64_t start,
                       std::uint32_t rank) {
  // Each position of a drawn order is looked up as it is dealt. Steps of rows
  // are told as G by the largest, rounded up, so an epoch may have fewer.
  const bool is_drawn = options.order.shuffle == Shuffle::kDrawn;
  return Steps::make({.samples = options.samples,
                      .start = start,
                      .global_batch = options.global_batch,
                      .rank = {rank, options.ranks.world_size},
                      .tail = is_drawn ? Tail::kKeep : options.tail});
}

}  // namespace

Result<NextUse> NextUse::make(const NextUseOptions& options) {
  const RankRun& ranks = options.ranks;
  if (ranks.count == 0 || ranks.first >= ranks.world_size ||
      ranks.count > ranks.world_size - ranks.first) {
    return invalid(
        "{} ranks from {} on are not among {}: ranks count from 0, and at "
        "least one must be asked for",
        ranks.count, ranks.first, ranks.world_size);
  }
  const std::uint32_t last = ranks.first + (ranks.count - 1);
  LEAT_TRY(Steps running_first, steps_of(options, options.start, ranks.first));
  LEAT_TRY(Steps running_last, steps_of(options, options.start, last));
  LEAT_TRY(Steps later_first, steps_of(options, 0, ranks.first));
  LEAT_TRY(Steps later_last, steps_of(options, 0, last));
  return NextUse(options,
                 cut(options, running_first, running_last, options.start),
                 cut(options, later_first, later_last, 0));
}

NextUse::Cut NextUse::cut(const NextUseOptions& options, const Steps& first,
                          const Steps& last, std::uint64_t start) {
  Cut cut{.first = first,
          .last = last,
          .start = start,
          .global_batch = Divisor(options.global_batch),
          .alike_end = start,
          .in_step = {}};
  // Padding may stand for any position.
  if (first.count() < 2 || options.tail == Tail::kPad) return cut;
  cut.alike_end = start + (first.count() - 1) * options.global_batch;
  const StepSlice slice = cut.slice(0);
  cut.in_step = {slice.begin - start, slice.end - start};
  return cut;
}

AccessTime NextUse::time_of(std::uint64_t epoch, std::uint64_t position) const {
  if (options_.order.shuffle == Shuffle::kDrawn) {
    return epoch * options_.epoch_time + position;
  }
  const AccessTime each =
      options_.epoch_time == 0 ? options_.samples : options_.epoch_time;
  return epoch * each + std::min(position, options_.samples - 1);
}

AccessTime NextUse::at_or_after(SampleId sample, std::uint64_t epoch,
                                std::uint64_t position) {
  forget_before(epoch);
  if (options_.order.shuffle == Shuffle::kDrawn) {
    return drawn_at_or_after(sample, epoch, position);
  }
  constexpr std::size_t kTogether = EpochOrder::kTogether;
  const std::uint64_t first = options_.first_sample;
  // By themselves the first few, where ranks that are few meet it again.
  std::uint64_t alone = options_.order.shuffle == Shuffle::kFull ? 2 : kNever;
  while (epoch < options_.end_epoch) {
    if (alone > 0) {
      const std::uint64_t at = order_of(epoch).position_of(sample);
      const AccessTime read = read_at(epoch, first + at, position);
      if (read != kNever) return read;
      if (alone > 0) --alone;
      ++epoch;
      position = 0;
      continue;
    }
    (void)order_of(epoch + kTogether - 1);
    const auto orders =
        std::span(orders_).subspan(epoch - first_epoch_).first<kTogether>();
    for (const std::uint64_t at : EpochOrder::positions_of(orders, sample)) {
      if (epoch == options_.end_epoch) break;
      const AccessTime read = read_at(epoch, first + at, position);
      if (read != kNever) return read;
      ++epoch;
      position = 0;
    }
  }
  return kNever;
}

AccessTime NextUse::drawn_at_or_after(SampleId sample, std::uint64_t epoch,
                                      std::uint64_t position) {
  const std::uint64_t end = std::min(options_.end_epoch, epoch + 2);
  for (; epoch < end; ++epoch, position = 0) {
    const Drawn* known = drawn_in(epoch);
    if (known == nullptr) break;
    for (const std::uint64_t at : known->positions.of(sample)) {
      if (at < position || !is_of_ranks(*known, epoch, at)) continue;
      return time_of(epoch, at);
    }
  }
  if (epoch >= options_.end_epoch) return kNever;
  return time_of(epoch, std::max<std::uint64_t>(options_.samples, 1) - 1);
}

/// True if these ranks read the sample there, except in a tail of samples,
/// which is dealt differently: a miss there costs a hit and no more.
bool NextUse::is_of_ranks(const Drawn& drawn, std::uint64_t epoch,
                          std::uint64_t position) const {
  const std::uint64_t start = epoch == options_.epoch ? options_.start : 0;
  if (position < start) return false;
  if (!drawn.is_ours.empty()) return drawn.is_ours[position];
  const RankRun& ranks = options_.ranks;
  const std::uint64_t each = options_.global_batch / ranks.world_size;
  const std::uint64_t in = (position - start) % options_.global_batch;
  return in >= ranks.first * each && in < (ranks.first + ranks.count) * each;
}

/// Steps of rows are of unequal size, and may be dealt otherwise than in runs.
std::vector<bool> NextUse::ours_in(std::uint64_t epoch,
                                   const DrawnEpoch& told) const {
  const StepRows rows = told.rows();
  const RankRun& ranks = options_.ranks;
  if (rows.ends == nullptr || ranks.count == ranks.world_size) return {};
  std::vector<bool> ours(told.size());
  for (std::uint32_t r = 0; r < ranks.count; ++r) {
    const Result<Steps> steps = Steps::make(
        {.samples = told.size(),
         .start = epoch == options_.epoch ? options_.start : 0,
         .global_batch = options_.global_batch,
         .rank = {.rank = ranks.first + r, .world_size = ranks.world_size},
         .tail = options_.tail},
        rows);
    if (!steps) return {};  // Its run says why.
    for (std::uint64_t step = 0; step < steps->count(); ++step) {
      for (const std::uint64_t at : steps->positions(step)) ours[at] = true;
    }
  }
  return ours;
}

/// Null: nobody has told yet what stands there.
const NextUse::Drawn* NextUse::drawn_in(std::uint64_t epoch) {
  drawn_.erase(drawn_.begin(), drawn_.lower_bound(first_epoch_));
  if (const auto found = drawn_.find(epoch); found != drawn_.end()) {
    return &found->second;
  }
  const auto told = options_.order.drawn->epoch(epoch);
  if (told == nullptr) return nullptr;
  const auto made = drawn_.emplace(
      epoch, Drawn{.positions = DrawnPositions(*told, options_.dataset_samples),
                   .is_ours = ours_in(epoch, *told)});
  return &made.first->second;
}

/// When these ranks read what stands at `at` of an epoch, from `from` on.
AccessTime NextUse::read_at(std::uint64_t epoch, std::uint64_t at,
                            std::uint64_t from) const {
  const Cut& cut = cut_of(epoch);
  if (cut.is_elsewhere(at)) return kNever;
  const std::uint64_t read = first_read(cut, {at, at + 1}, from);
  return read == kNoRead ? kNever : time_of(epoch, read);
}

AccessTime NextUse::block_at_or_after(std::uint64_t block, std::uint64_t epoch,
                                      std::uint64_t position) {
  forget_before(epoch);
  for (; epoch < options_.end_epoch; ++epoch, position = 0) {
    PositionRun window = order_of(epoch).window_of(block);
    window.begin += options_.first_sample;
    window.end += options_.first_sample;
    if (options_.is_in_lanes) {
      // Any position of the window may be ours, so we take the first.
      const Cut& cut = cut_of(epoch);
      const std::uint64_t low = std::max({window.begin, position, cut.start});
      if (low < window.end && is_home(order_of(epoch), block)) {
        return time_of(epoch, low);
      }
      continue;
    }
    const std::uint64_t read = first_read(cut_of(epoch), window, position);
    if (read != kNoRead) return time_of(epoch, read);
  }
  return kNever;
}

bool NextUse::is_home(const EpochOrder& order, std::uint64_t block) const {
  const RankRun& ranks = options_.ranks;
  const HomeRanks homes = order.homes_of(block, ranks.world_size);
  return homes.first < ranks.first + ranks.count && homes.last >= ranks.first;
}

const EpochOrder& NextUse::order_of(std::uint64_t epoch) {
  while (epoch - first_epoch_ >= orders_.size()) {
    orders_.emplace_back(
        options_.blocks == nullptr ? options_.samples
                                   : options_.blocks->samples(),
        options_.order, options_.blocks, first_epoch_ + orders_.size());
  }
  return orders_[epoch - first_epoch_];
}

void NextUse::forget_before(std::uint64_t epoch) {
  LEAT_CHECK(epoch >= first_epoch_);
  const std::uint64_t past =
      std::min<std::uint64_t>(epoch - first_epoch_, orders_.size());
  orders_.erase(orders_.begin(),
                orders_.begin() + static_cast<std::ptrdiff_t>(past));
  first_epoch_ = epoch;
}

std::uint64_t NextUse::first_read(const Cut& cut, PositionRun run,
                                  std::uint64_t from) const {
  const std::uint64_t read = in_steps(cut, run, from);
  return read != kNoRead ? read : in_padding(cut, run, from);
}

std::uint64_t NextUse::in_steps(const Cut& cut, PositionRun run,
                                std::uint64_t from) const {
  const std::uint64_t low = std::max({run.begin, from, cut.start});
  if (low >= run.end) return kNoRead;
  const std::uint64_t step = (low - cut.start) / options_.global_batch;
  // The rest of the step that `low` is in, else the start of the next one. A
  // rank may get nothing of a tail.
  for (std::uint64_t k = step; k < step + 2 && k < cut.first.count(); ++k) {
    const StepSlice slice = cut.slice(k);
    const std::uint64_t read = std::max(low, slice.begin);
    if (read < std::min(slice.end, run.end)) return read;
  }
  return kNoRead;
}

std::uint64_t NextUse::in_padding(const Cut& cut, PositionRun run,
                                  std::uint64_t from) const {
  const std::uint64_t samples = options_.samples;
  if (options_.tail != Tail::kPad || cut.first.count() == 0) return kNoRead;
  const StepSlice slice = cut.slice(cut.first.count() - 1);
  const std::uint64_t low = std::max({slice.begin, from, samples});
  const std::uint64_t stands_for = low % samples;
  std::uint64_t read = low;
  if (stands_for < run.begin) read += run.begin - stands_for;
  if (stands_for >= run.end) read += samples - stands_for + run.begin;
  return read < slice.end ? read : kNoRead;
}

}  // namespace leat
