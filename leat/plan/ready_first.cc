#include "leat/plan/ready_first.h"

#include <fmt/core.h>

#include <algorithm>

#include "leat/base/check.h"

namespace leat {

std::uint64_t ReadyFirst::samples_in(std::uint64_t step) const {
  const StepSlice slice = steps_.slice(step);
  return std::min(slice.end, samples_) - std::min(slice.begin, samples_);
}

/// Moves one more position into the pool. False at the end.
bool ReadyFirst::pull() {
  while (pulled_step_ < steps_.count() &&
         pulled_row_ >= samples_in(pulled_step_)) {
    ++pulled_step_;
    pulled_row_ = 0;
  }
  if (pulled_step_ >= steps_.count()) return false;
  pool_.push_back({.position = steps_.slice(pulled_step_).begin + pulled_row_++,
                   .number = pulled_++});
  return true;
}

/// The end, as a number, of the window from which a step of `needed`
/// samples is dealt.
std::uint64_t ReadyFirst::reach(std::uint64_t needed) const {
  const std::uint64_t begin = pool_.empty() ? pulled_ : pool_.front().number;
  return begin + std::max(window_, needed);
}

Result<ReadyFirst> ReadyFirst::make(
    const Steps& steps, std::uint64_t samples, std::uint64_t window,
    const std::vector<std::uint64_t>& left_behind) {
  ReadyFirst made(steps, samples, window);
  if (left_behind.empty()) return made;
  const Error damaged(
      ErrorCode::kInvalidArgument,
      fmt::format("the {} positions that the state says were left behind do "
                  "not fit to its position; it is damaged, or of another rank",
                  left_behind.size()));
  for (std::size_t i = 1; i < left_behind.size(); ++i) {
    if (left_behind[i - 1] >= left_behind[i]) return damaged;
  }
  // The positions that they replace were dealt, except for those among them.
  for (std::size_t i = 0; i < left_behind.size(); ++i) {
    if (!made.pull()) return damaged;
  }
  if (left_behind.back() > made.pool_.back().position) return damaged;
  for (std::size_t i = 0; i < left_behind.size(); ++i) {
    made.pool_[i].position = left_behind[i];
  }
  made.passed_ = left_behind.size();
  return made;
}

std::vector<std::uint64_t> ReadyFirst::next_step(const Is& is_ready,
                                                 const Is& is_coming) {
  LEAT_CHECK(step_ < steps_.count());
  const StepSlice slice = steps_.slice(step_);
  const std::uint64_t needed = samples_in(step_);
  ++step_;
  const std::uint64_t end = reach(needed);
  while ((pulled_ < end || pool_.size() < needed) && pull()) {
  }
  LEAT_CHECK(pool_.size() >= needed);
  std::vector<std::size_t> taken;  // Places in the pool.
  std::vector<bool> is_taken(pool_.size());
  const auto take_all = [&](const auto& is_wanted) {
    for (std::size_t i = 0; i < pool_.size() && taken.size() < needed; ++i) {
      if (is_taken[i] || !is_wanted(pool_[i])) continue;
      is_taken[i] = true;
      taken.push_back(i);
    }
  };
  take_all([&](const Waiting& it) {
    return it.number < end && is_ready(it.position);
  });
  take_all([&](const Waiting& it) {
    return it.number < end && !is_coming(it.position);
  });
  take_all([](const Waiting&) { return true; });
  std::vector<std::uint64_t> positions;
  std::size_t last = 0;
  for (const std::size_t i : taken) {
    positions.push_back(pool_[i].position);
    last = std::max(last, i + 1);
  }
  std::deque<Waiting> rest;
  for (std::size_t i = 0; i < pool_.size(); ++i) {
    if (!is_taken[i]) rest.push_back(pool_[i]);
  }
  passed_ = std::max(passed_, last) - taken.size();
  pool_ = std::move(rest);
  for (std::uint64_t p = std::max(slice.begin, samples_); p < slice.end; ++p) {
    positions.push_back(p);
  }
  return positions;
}

std::vector<std::uint64_t> ReadyFirst::left_behind() const {
  std::vector<std::uint64_t> positions;
  for (std::size_t i = 0; i < passed_; ++i) {
    positions.push_back(pool_[i].position);
  }
  return positions;
}

}  // namespace leat
