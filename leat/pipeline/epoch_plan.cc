#include "leat/pipeline/epoch_plan.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "leat/plan/dealing.h"

namespace leat {
namespace {

/// `reads` before it. Later than a turn can be is as late as one can be.
ReadTurn turn_of(std::uint64_t reads) {
  return static_cast<ReadTurn>(
      std::min<std::uint64_t>(reads + 1, std::numeric_limits<ReadTurn>::max()));
}

}  // namespace

EpochPlan::EpochPlan(const RunContext& context, EpochPlanOptions options)
    : context_(context),
      epoch_(options.epoch),
      order_(std::move(options.order)),
      steps_(options.steps),
      next_use_(std::move(options.next_use)),
      dealing_(std::move(options.dealing)),
      ready_first_(std::move(options.ready_first)) {
  if (context_.pieces != nullptr && order_.has_lanes() &&
      steps_.rank().world_size > 1) {
    lanes_.emplace(order_, steps_);
  }
}

bool EpochPlan::begin(const std::stop_token& stop) {
  if (dealing_ == nullptr || steps_.count() == 0) return true;
  // Our own epoch and position, so no other error is possible.
  return dealing_->seek(epoch_, steps_.all_ranks(0).begin, stop).has_value();
}

std::vector<std::uint64_t> EpochPlan::positions_of(std::uint64_t step,
                                                   const IsSo& is_cached,
                                                   const IsSo& is_coming) {
  if (context_.locality == Locality::kSticky) {
    return positions_at_home(steps_, step, order_, context_.first_sample);
  }
  if (context_.homes != nullptr) {
    return positions_at_homes(steps_, step, order_, [this](SampleId sample) {
      return context_.homes->of(sample);
    });
  }
  if (ready_first_) return ready_first_->next_step(is_cached, is_coming);
  std::vector<std::uint64_t> positions;
  if (dealing_ != nullptr) {
    dealt_next_.clear();
    for (const DealtSample& dealt : dealing_->next_step()) {
      if (dealt.rank != steps_.rank().rank) continue;
      positions.push_back(dealt.position);
      dealt_next_.push_back(dealt.next_use);
    }
    return positions;
  }
  if (lanes_) return lanes_->positions_of(step);
  return steps_.positions(step);
}

bool EpochPlan::is_mine(std::uint64_t position) {
  if (steps_.rank().world_size == 1) return true;
  if (lanes_) return lanes_->is_ours(position);
  const StepSlice slice = steps_.slice(steps_.step_of(position));
  return position >= slice.begin && position < slice.end;
}

std::vector<std::uint64_t> EpochPlan::left_behind() const {
  if (!ready_first_) return {};
  return ready_first_->left_behind();
}

/// Whether who shares our cache reads the sample again, for all that is known.
bool EpochPlan::is_ours(SampleId sample) const {
  if (context_.locality != Locality::kSticky) return true;
  const RankRun& readers = context_.readers;
  const std::uint32_t home =
      home_of(context_.in_dataset(sample), readers.world_size);
  return home >= readers.first && home < readers.first + readers.count;
}

std::optional<ReadHint> EpochPlan::hint_for(const SampleWork& sample) {
  if (!next_use_) return std::nullopt;
  if (dealing_ != nullptr) {
    return ReadHint{.now = next_use_->time_of(epoch_, sample.position),
                    .next_use = dealt_next_[sample.row]};
  }
  ReadHint hint = hint_at(sample.id, sample.position, sample.position + 1);
  hint.sample = context_.in_dataset(sample.id).value;
  return hint;
}

// All of a piece is used within its epoch; then comes the next one.
std::optional<ReadHint> EpochPlan::hint_for_piece(SampleId first) {
  if (!next_use_) return std::nullopt;
  return hint_at(first, order_.position_of(first), order_.size());
}

// In a block shuffle the window of a sample's block is close enough, and is
// known without a complete order.
ReadHint EpochPlan::hint_at(SampleId sample, std::uint64_t position,
                            std::uint64_t after) {
  const std::uint64_t begin = context_.first_sample;
  AccessTime next = kNever;
  if (context_.windows != nullptr && is_ours(sample)) {
    next = next_use_->block_at_or_after(context_.windows->block_of(sample),
                                        epoch_, begin + order_.size());
  } else if (is_ours(sample)) {
    next = next_use_->at_or_after(sample, epoch_, begin + after);
  }
  return {.now = next_use_->time_of(epoch_, begin + position),
          .next_use = next};
}

/// Samples that are taken as soon as they are cached always have the next turn.
void EpochPlan::tell_board() const {
  if (context_.board == nullptr) return;
  const std::uint64_t samples = order_.size();
  UseBoard::Reading reading{.epoch = epoch_,
                            .turns = std::vector<ReadTurn>(samples),
                            .ranks = steps_.rank().world_size};
  const auto read = [&](std::uint64_t position) {
    if (position >= samples) return;
    reading.turns[order_.at(position).value] =
        ready_first_ ? 1 : turn_of(position);
  };
  std::optional<LaneDealing> lanes = lanes_;
  for (std::uint64_t step = 0; step < steps_.count(); ++step) {
    const StepSlice slice = steps_.slice(step);
    if (step == 0) reading.begin = slice.begin;
    if (lanes) {
      std::ranges::for_each(lanes->positions_of(step), read);
    } else {
      for (std::uint64_t p = slice.begin; p < slice.end; ++p) read(p);
    }
  }
  if (ready_first_) {
    for (const std::uint64_t p : ready_first_->left_behind()) read(p);
  }
  context_.board->begin_epoch(reading);
}

ReadTurn EpochPlan::turn_after(const SampleWork& sample) {
  const std::optional<ReadHint> hint = hint_for(sample);
  if (!hint || hint->next_use == kNever) return 0;
  const std::uint64_t epochs = hint->next_use / kEpochTime - epoch_;
  const std::uint64_t position = hint->next_use % kEpochTime;
  return turn_of(epochs * order_.size() + (ready_first_ ? 0 : position));
}

}  // namespace leat
