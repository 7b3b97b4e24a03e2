// A counter of a job: each rank reports its own, and the agent shows the sum
// over ranks.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string_view>

#include "leat/metrics/metrics.h"

namespace leat {

/// Everything that defines one counter of a job. The wire, the view, its JSON,
/// /metrics and their reference pages are derived from it.
struct JobCounter {
  enum class Unit : std::uint8_t { kCount, kBytes, kSeconds, kDollars };
  /// The object of the view's JSON that shows it.
  enum class Part : std::uint8_t { kLedger, kCache };
  enum class Unknown : std::uint8_t { kNotEver, kUnlessTold, kWhileZero };

  const char* name;  ///< On the wire.
  Unit unit = Unit::kCount;
  Part part = Part::kLedger;
  const char* shown_as = nullptr;  ///< In the view's JSON; none: as `name`.
  /// An unknown total is null in JSON and has no line in /metrics.
  Unknown unknown = Unknown::kNotEver;
  bool is_required = false;  ///< The agent rejects rates without it.
  /// The loader's metric that counts it; seconds are in nanoseconds and dollars
  /// in nanodollars. None: engine/agent_link.cc reports it.
  std::optional<Metric> counted_by = std::nullopt;
  /// The name in /metrics, which ends with _total unless it is a gauge. Rows
  /// with the same name are adjacent, and the first has the help text.
  std::string_view exposed_as;
  std::string_view tier = {};  ///< Its label there; empty: none.
  std::string_view help = {};

  constexpr const char* key() const {
    return shown_as == nullptr ? name : shown_as;
  }
  /// It may fall.
  constexpr bool is_gauge() const { return !exposed_as.ends_with("_total"); }
  constexpr bool is_whole() const {
    return unit == Unit::kCount || unit == Unit::kBytes;
  }
};

/// All counters, in the order of JSON and /metrics.
std::span<const JobCounter* const> job_counters();

/// The reported totals.
using JobTotals = std::map<const JobCounter*, double>;

/// 0 if it was not reported.
double total_of(const JobTotals& totals, const JobCounter& counter);

/// Nullopt: unknown, in the sense of its row.
std::optional<double> known_total(const JobTotals& totals,
                                  const JobCounter& counter);

/// The totals that one loader's metrics count.
JobTotals totals_by(const Metrics& metrics);

/// Adds a rank's totals, each capped so that the sum stays a number even if a
/// rank lies.
void add_totals(const JobTotals& of_rank, JobTotals& sum);

}  // namespace leat
