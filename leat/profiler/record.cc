#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>

#include "leat/base/errors.h"
#include "leat/profiler/trial.h"

namespace leat {
namespace {

using Json = nlohmann::json;

/// No machine is up for longer, and nanoseconds of it can be counted.
constexpr std::chrono::years kMostUptime{100};

Error wrong(std::string_view what) {
  return corrupt("what a rank wrote down: {}", what);
}

Result<std::vector<double>> seconds_in(const Json& record, const char* name) {
  const auto found = record.find(name);
  if (found == record.end() || !found->is_array()) {
    return wrong(fmt::format("no list \"{}\"", name));
  }
  std::vector<double> seconds;
  seconds.reserve(found->size());
  for (const Json& one : *found) {
    const double value = one.is_number() ? one.get<double>() : -1;
    if (!(value >= 0) || !std::isfinite(value)) {
      return wrong(fmt::format("\"{}\" holds what is no time", name));
    }
    seconds.push_back(value);
  }
  return seconds;
}

Result<std::uint64_t> count_in(const Json& record, const char* name) {
  const auto found = record.find(name);
  if (found == record.end() || !found->is_number_unsigned()) {
    return wrong(fmt::format("no count \"{}\"", name));
  }
  return found->get<std::uint64_t>();
}

std::optional<std::uint64_t> optional_count_in(const Json& record,
                                               const char* name) {
  const auto found = record.find(name);
  if (found == record.end() || !found->is_number_unsigned()) {
    return std::nullopt;
  }
  return found->get<std::uint64_t>();
}

Result<std::optional<double>> optional_seconds_in(const Json& record,
                                                  const char* name) {
  const auto found = record.find(name);
  if (found == record.end() || found->is_null()) return std::optional<double>();
  const double value = found->is_number() ? found->get<double>() : -1;
  if (!(value >= 0) || !std::isfinite(value)) {
    return wrong(fmt::format("\"{}\" is no time", name));
  }
  return std::optional(value);
}

/// Reads a time of the monotonic clock; returns the clock's beginning if the
/// record has no such time.
Result<TimePoint> time_in(const Json& record, const char* name) {
  LEAT_TRY(const std::optional<double> seconds,
           optional_seconds_in(record, name));
  const std::chrono::duration<double> since_start(seconds.value_or(0));
  if (since_start > kMostUptime) return wrong(fmt::format("\"{}\"", name));
  return TimePoint(std::chrono::duration_cast<Nanoseconds>(since_start));
}

bool is_true_in(const Json& record, const char* name) {
  const auto found = record.find(name);
  return found != record.end() && found->is_boolean() && found->get<bool>();
}

std::string text_in(const Json& record, const char* name) {
  const auto found = record.find(name);
  const bool is_text = found != record.end() && found->is_string();
  return is_text ? found->get<std::string>().substr(0, 256) : std::string();
}

}  // namespace

Result<RankRecord> parse_record(std::string_view json) {
  const Json record = Json::parse(json, nullptr, false);
  if (!record.is_object()) return wrong("it is no JSON object");
  RankRecord result;
  LEAT_TRY(const std::uint64_t rank, count_in(record, "rank"));
  if (rank > 1'000'000) return wrong(fmt::format("rank {}", rank));
  result.rank = static_cast<std::uint32_t>(rank);
  LEAT_TRY(result.seen, count_in(record, "seen"));
  LEAT_TRY(result.step_seconds, seconds_in(record, "step_seconds"));
  LEAT_TRY(result.wait_seconds, seconds_in(record, "wait_seconds"));
  LEAT_TRY(result.supply_seconds, seconds_in(record, "supply_seconds"));
  if (result.wait_seconds.size() != result.step_seconds.size()) {
    return wrong("unequal numbers of steps and waits");
  }
  if (!result.step_seconds.empty() &&
      std::ranges::max(result.step_seconds) == 0) {
    return wrong("no step took any time");
  }
  LEAT_TRY(result.supply_cpu_seconds,
           optional_seconds_in(record, "supply_cpu_seconds"));
  LEAT_TRY(result.measured_from, time_in(record, "measured_from_seconds"));
  LEAT_TRY(result.measured_until, time_in(record, "measured_until_seconds"));
  result.measured_batches = optional_count_in(record, "measured_batches")
                                .value_or(result.step_seconds.size());
  result.rows = optional_count_in(record, "rows");
  result.epoch_batches = optional_count_in(record, "epoch_batches");
  result.workers = optional_count_in(record, "workers");
  result.loads_ahead = is_true_in(record, "loads_ahead");
  result.is_pipelined = is_true_in(record, "is_pipelined");
  result.gradient_bytes =
      optional_count_in(record, "gradient_bytes").value_or(0);
  result.gradient_buckets =
      optional_count_in(record, "gradient_buckets").value_or(0);
  result.loader = text_in(record, "loader");
  result.accelerator = text_in(record, "accelerator");
  result.torch = text_in(record, "torch");
  return result;
}

}  // namespace leat
