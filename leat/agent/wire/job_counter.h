// A counter of a job: each rank tells the agent its own, and the agent shows
// the sum of the ranks.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string_view>

#include "leat/metrics/metrics.h"

namespace leat {

/// Everything there is to know about one counter of a job. The wire, the view,
/// its JSON, /metrics and their reference pages follow from it.
struct JobCounter {
  enum class Unit : std::uint8_t { kCount, kBytes, kSeconds, kDollars };
  /// The object of the view's JSON that shows it.
  enum class Part : std::uint8_t { kLedger, kCache };
  enum class Unknown : std::uint8_t { kNotEver, kUnlessTold, kWhileZero };

  const char* name;  ///< On the wire.
  Unit unit = Unit::kCount;
  Part part = Part::kLedger;
  const char* shown_as = nullptr;  ///< In the view's JSON; none: `name`.
  /// A total that is not known is null in JSON and has no line in /metrics.
  Unknown unknown = Unknown::kNotEver;
  bool is_required = false;  ///< The agent refuses rates without it.
  /// The metric of a loader that counts it, seconds in nanoseconds and dollars
  /// in nanodollars. None: engine/agent_link.cc tells it.
  std::optional<Metric> counted_by = std::nullopt;
  /// The name in /metrics, which ends with _total unless it is a gauge. Rows of
  /// one name are neighbours, and the first of them has the help.
  std::string_view exposed_as;
  std::string_view tier = {};  ///< A label there; empty: there is none.
  std::string_view help = {};

  constexpr const char* key() const {
    return shown_as == nullptr ? name : shown_as;
  }
  constexpr bool is_whole() const {
    return unit == Unit::kCount || unit == Unit::kBytes;
  }
};

/// Every counter, in the order of JSON and /metrics.
std::span<const JobCounter* const> job_counters();

/// The totals that somebody told.
using JobTotals = std::map<const JobCounter*, double>;

/// 0 if nobody told it.
double total_of(const JobTotals& totals, const JobCounter& counter);

/// Nullopt: unknown, as the row says.
std::optional<double> known_total(const JobTotals& totals,
                                  const JobCounter& counter);

/// The totals of one loader that its metrics count.
JobTotals totals_by(const Metrics& metrics);

/// Adds a rank's totals, each capped, so that the sum is still a number if a
/// rank lies.
void add_totals(const JobTotals& of_rank, JobTotals& sum);

}  // namespace leat
