#include "leat/profile/step_parts.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <random>
#include <utility>

#include "leat/base/errors.h"

namespace leat {
namespace {

constexpr std::size_t kConditions = static_cast<std::size_t>(Condition::kCount);

using RunsByCondition =
    std::array<std::vector<const ProfiledRun*>, kConditions>;
/// NaN where a condition was not run.
using Times = std::array<double, kConditions>;

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<long>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  if (values.size() % 2 != 0) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

/// Picks runs and steps for one estimate: all of them, or a resample.
class Sampler {
 public:
  Sampler() = default;
  explicit Sampler(std::uint64_t seed) : random_(std::in_place, seed) {}

  std::size_t pick(std::size_t i, std::size_t count) {
    if (!random_) return i;
    return std::uniform_int_distribution<std::size_t>(0, count - 1)(*random_);
  }

 private:
  std::optional<std::mt19937_64> random_;
};

/// The mean step of the slowest rank. All ranks are resampled alike: a step is
/// theirs together.
double mean_step(const ProfiledRun& run, Sampler& sampler) {
  const std::size_t steps = run.step_seconds.front().size();
  std::vector<double> sums(run.step_seconds.size());
  for (std::size_t i = 0; i < steps; ++i) {
    const std::size_t step = sampler.pick(i, steps);
    for (std::size_t rank = 0; rank < sums.size(); ++rank) {
      sums[rank] += run.step_seconds[rank][step];
    }
  }
  return *std::ranges::max_element(sums) / static_cast<double>(steps);
}

/// Pool adjacent violators: the closest times that do not fall.
void level(Times& times) {
  struct Pool {
    double sum;
    std::size_t count;
  };
  std::vector<Pool> pools;
  for (const double time : times) {
    if (std::isnan(time)) continue;
    pools.push_back({time, 1});
    while (pools.size() > 1) {
      const Pool last = pools.back();
      Pool& before = pools[pools.size() - 2];
      if (before.sum * static_cast<double>(last.count) <=
          last.sum * static_cast<double>(before.count)) {
        break;
      }
      before = {before.sum + last.sum, before.count + last.count};
      pools.pop_back();
    }
  }
  auto pool = pools.begin();
  std::size_t used = 0;
  for (double& time : times) {
    if (std::isnan(time)) continue;
    time = pool->sum / static_cast<double>(pool->count);
    if (++used == pool->count) {
      ++pool;
      used = 0;
    }
  }
}

Times estimate(const RunsByCondition& runs, Sampler sampler) {
  Times times{};
  for (std::size_t c = 0; c < kConditions; ++c) {
    if (runs[c].empty()) {
      times[c] = std::nan("");
      continue;
    }
    std::vector<double> means;
    means.reserve(runs[c].size());
    for (std::size_t i = 0; i < runs[c].size(); ++i) {
      means.push_back(
          mean_step(*runs[c][sampler.pick(i, runs[c].size())], sampler));
    }
    times[c] = median(std::move(means));
  }
  level(times);
  return times;
}

StepPart part_added_by(Condition condition, bool has_warm) {
  switch (condition) {
    case Condition::kNode:
      return StepPart::kInterconnect;
    case Condition::kNodes:
      return StepPart::kNetwork;
    case Condition::kWarm:
      return StepPart::kPreparation;
    case Condition::kCold:
      return has_warm ? StepPart::kFetch : StepPart::kInput;
    default:
      return StepPart::kCompute;
  }
}

/// The time that each condition that was run adds to the one before it.
std::vector<std::pair<StepPart, double>> differences(const Times& times) {
  const bool has_warm =
      !std::isnan(times[static_cast<std::size_t>(Condition::kWarm)]);
  std::vector<std::pair<StepPart, double>> parts;
  parts.reserve(kConditions);
  double before = 0;
  for (std::size_t c = 0; c < kConditions; ++c) {
    if (std::isnan(times[c])) continue;
    parts.emplace_back(part_added_by(static_cast<Condition>(c), has_warm),
                       times[c] - before);
    before = times[c];
  }
  return parts;
}

Estimate with_interval(double seconds, std::vector<double> resampled,
                       double confidence) {
  std::ranges::sort(resampled);
  const double last = static_cast<double>(resampled.size() - 1);
  const auto at = [&](double share) {
    return resampled[static_cast<std::size_t>(std::lround(share * last))];
  };
  const double tail = (1 - confidence) / 2;
  return {.seconds = seconds, .low = at(tail), .high = at(1 - tail)};
}

Result<void> check(const ProfiledRun& run) {
  if (run.step_seconds.empty() || run.step_seconds.front().empty()) {
    return invalid(
        "a run of condition \"{}\" has no step: let the script run for longer, "
        "or measure fewer steps",
        to_string(run.condition));
  }
  for (const std::vector<double>& rank : run.step_seconds) {
    if (rank.size() != run.step_seconds.front().size()) {
      return invalid("ranks of a run of condition \"{}\" have {} and {} steps",
                     to_string(run.condition), run.step_seconds.front().size(),
                     rank.size());
    }
    for (const double seconds : rank) {
      if (!(seconds > 0) || !std::isfinite(seconds)) {
        return invalid("a step of {} s", seconds);
      }
    }
  }
  return {};
}

Result<RunsByCondition> by_condition(std::span<const ProfiledRun> runs) {
  RunsByCondition sorted;
  for (const ProfiledRun& run : runs) {
    LEAT_TRY_VOID(check(run));
    sorted[static_cast<std::size_t>(run.condition)].push_back(&run);
  }
  for (const Condition needed : {Condition::kAlone, Condition::kCold}) {
    if (sorted[static_cast<std::size_t>(needed)].empty()) {
      return invalid(
          "no run of condition \"{}\": the others are differences from it",
          to_string(needed));
    }
  }
  return sorted;
}

}  // namespace

std::string_view to_string(Condition condition) {
  constexpr std::array<std::string_view, kConditions> kNames = {
      "alone", "node", "nodes", "warm", "cold"};
  return kNames.at(static_cast<std::size_t>(condition));
}

std::string_view to_string(StepPart part) {
  constexpr std::array<std::string_view,
                       static_cast<std::size_t>(StepPart::kCount)>
      kNames = {"compute",     "interconnect", "network",
                "preparation", "fetch",        "input"};
  return kNames.at(static_cast<std::size_t>(part));
}

Result<StepParts> split_step(std::span<const ProfiledRun> runs,
                             const SplitOptions& options) {
  LEAT_TRY(const RunsByCondition sorted, by_condition(runs));
  const Times times = estimate(sorted, Sampler());
  const auto parts = differences(times);

  std::vector<std::vector<double>> resampled(parts.size());
  std::vector<double> steps;
  for (std::uint32_t i = 0; i < std::max(options.resamples, 1U); ++i) {
    const Times again = estimate(sorted, Sampler(options.seed + i));
    const auto their = differences(again);
    for (std::size_t p = 0; p < parts.size(); ++p) {
      resampled[p].push_back(their[p].second);
    }
    steps.push_back(again.back());
  }

  StepParts split;
  split.step =
      with_interval(times.back(), std::move(steps), options.confidence);
  split.parts.reserve(parts.size());
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const Estimate time = with_interval(
        parts[p].second, std::move(resampled[p]), options.confidence);
    split.parts.push_back(
        {.part = parts[p].first, .time = time, .is_tie = time.low <= 0});
  }
  for (std::size_t c = 0; c < kConditions; ++c) {
    split.seconds[c] = std::isnan(times[c]) ? 0 : times[c];
  }
  return split;
}

}  // namespace leat
