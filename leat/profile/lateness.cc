#include "leat/profile/lateness.h"

#include <algorithm>
#include <cstddef>

namespace leat {
namespace {

constexpr double kNothing = 0.02;
constexpr double kStandsOut = 2;

/// The median of `values` without the one at `without`. REQUIRES: at least two.
double median_of_others(std::vector<double> values, std::size_t without) {
  values.erase(values.begin() + static_cast<std::ptrdiff_t>(without));
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half]
                                : (values[half - 1] + values[half]) / 2;
}

}  // namespace

void Lateness::add(std::span<const RankSteps> ranks) {
  if (ranks.size() < 2) return;
  std::size_t steps = ranks[0].waits.size();
  bool has_own = true;
  double seconds = 0;
  for (const RankSteps& rank : ranks) {
    steps = std::min(steps, rank.waits.size());
    has_own = has_own && !rank.own.empty();
    if (!rank.waits.empty()) {
      seconds += rank.seconds / static_cast<double>(rank.waits.size());
    }
  }
  if (steps == 0) return;
  steps_ += steps;
  seconds_ +=
      seconds / static_cast<double>(ranks.size()) * static_cast<double>(steps);

  std::vector<double> waits(ranks.size());
  std::vector<double> own(ranks.size());
  std::vector<double> busy(ranks.size());
  for (std::size_t step = 0; step < steps; ++step) {
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      waits[r] = ranks[r].waits[step];
      own[r] = has_own ? ranks[r].own[step] : 0;
      busy[r] = waits[r] + own[r];
    }
    const auto last = static_cast<std::size_t>(
        std::max_element(busy.begin(), busy.end()) - busy.begin());
    const double wait = waits[last] - median_of_others(waits, last);
    const double work = own[last] - median_of_others(own, last);
    const double lost = busy[last] - median_of_others(busy, last);
    lost_[{static_cast<std::uint32_t>(last),
           work > wait ? "compute" : ranks[last].causes[step]}] += lost;
  }
}

std::optional<LateRank> Lateness::worst() const {
  std::map<std::uint32_t, double> by_rank;
  for (const auto& [who, lost] : lost_) by_rank[who.first] += lost;
  LateRank worst;
  double most = 0;
  double next = 0;
  for (const auto& [rank, lost] : by_rank) {
    if (lost > most) {
      next = most;
      most = lost;
      worst.rank = rank;
    } else {
      next = std::max(next, lost);
    }
  }
  if (seconds_ <= 0 || most < kNothing * seconds_ || most < kStandsOut * next) {
    return std::nullopt;
  }
  worst.fraction = std::min(1.0, most / seconds_);
  double largest = 0;
  for (const auto& [who, lost] : lost_) {
    if (who.first != worst.rank || lost <= largest) continue;
    largest = lost;
    worst.cause = who.second;
  }
  return worst;
}

}  // namespace leat
