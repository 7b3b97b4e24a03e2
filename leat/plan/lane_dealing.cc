#include "leat/plan/lane_dealing.h"

#include <algorithm>
#include <limits>

#include "leat/base/check.h"

namespace leat {

std::uint64_t LaneDealing::key_of(std::uint64_t position,
                                  const StepSlice& all) const {
  constexpr std::uint64_t kBehindTheLine = 0xffffffff;
  const std::uint64_t place =
      position < order_.size() ? order_.place_of(position) : kBehindTheLine;
  return place << 32 | (position - all.begin);
}

LaneDealing::Cut LaneDealing::cut(std::uint64_t step) {
  const StepSlice all = steps_.all_ranks(step);
  const StepSlice run = steps_.slice(step);  // As many as this rank gets.
  LEAT_CHECK(all.size() < std::numeric_limits<std::uint32_t>::max());
  keys_.resize(all.size());
  for (std::uint64_t p = all.begin; p < all.end; ++p) {
    keys_[p - all.begin] = key_of(p, all);
  }
  // Only two keys are wanted, not all in their order.
  const auto select = [&](std::uint64_t from, std::uint64_t place) {
    if (place == keys_.size()) return std::numeric_limits<std::uint64_t>::max();
    const auto begin = keys_.begin();
    std::nth_element(begin + static_cast<std::ptrdiff_t>(from),
                     begin + static_cast<std::ptrdiff_t>(place), keys_.end());
    return keys_[place];
  };
  const std::uint64_t first = run.begin - all.begin;
  Cut cut;
  cut.begin = select(0, first);
  cut.end = select(first, run.end - all.begin);
  return cut;
}

const LaneDealing::Cut& LaneDealing::cut_of(std::uint64_t step) {
  LEAT_CHECK(step >= first_step_);
  while (first_step_ + cuts_.size() <= step) {
    cuts_.push_back(cut(first_step_ + cuts_.size()));
  }
  return cuts_[step - first_step_];
}

std::vector<std::uint64_t> LaneDealing::positions_of(std::uint64_t step) {
  for (; first_step_ < step && !cuts_.empty(); ++first_step_) {
    cuts_.pop_front();
  }
  if (cuts_.empty()) first_step_ = step;
  const StepSlice all = steps_.all_ranks(step);
  const Cut& cut = cut_of(step);
  std::vector<std::uint64_t> mine;
  mine.reserve(steps_.size(step));
  for (std::uint64_t p = all.begin; p < all.end; ++p) {
    const std::uint64_t key = key_of(p, all);
    if (key >= cut.begin && key < cut.end) mine.push_back(p);
  }
  return mine;
}

bool LaneDealing::is_ours(std::uint64_t position) {
  const std::uint64_t step = steps_.step_of(position);
  const Cut& cut = cut_of(step);
  const std::uint64_t key = key_of(position, steps_.all_ranks(step));
  return key >= cut.begin && key < cut.end;
}

}  // namespace leat
