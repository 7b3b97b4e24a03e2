#include "leat/agent/wire/job_counter.h"

#include <algorithm>
#include <cmath>

namespace leat {
namespace {

constexpr double kMostWhole = 1e15;
constexpr double kMostAmount = 1e9;  // Seconds or dollars.

}  // namespace

double total_of(const JobTotals& totals, const JobCounter& counter) {
  const auto found = totals.find(&counter);
  return found == totals.end() ? 0 : found->second;
}

std::optional<double> known_total(const JobTotals& totals,
                                  const JobCounter& counter) {
  const double total = total_of(totals, counter);
  switch (counter.unknown) {
    case JobCounter::Unknown::kNotEver:
      return total;
    case JobCounter::Unknown::kUnlessTold:
      return totals.contains(&counter) ? std::optional(total) : std::nullopt;
    case JobCounter::Unknown::kWhileZero:
      return total > 0 ? std::optional(total) : std::nullopt;
  }
  return std::nullopt;
}

JobTotals totals_by(const Metrics& metrics) {
  JobTotals totals;
  for (const JobCounter* counter : job_counters()) {
    if (!counter->counted_by) continue;
    const std::int64_t value = metrics.value(*counter->counted_by);
    if (value == Metrics::kUnknown) continue;
    const auto count = static_cast<double>(std::max<std::int64_t>(0, value));
    totals[counter] = counter->is_whole() ? count : count / 1e9;
  }
  return totals;
}

void add_totals(const JobTotals& of_rank, JobTotals& sum) {
  for (const auto& [counter, total] : of_rank) {
    sum[counter] += counter->is_whole()
                        ? std::floor(std::min(total, kMostWhole))
                        : std::min(total, kMostAmount);
  }
}

}  // namespace leat
