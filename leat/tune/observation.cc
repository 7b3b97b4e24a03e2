#include "leat/tune/observation.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "leat/base/errors.h"

namespace leat {
namespace {

// Beyond it a double no longer counts by ones.
constexpr double kMostCount = 9e15;

/// Calls `visit(name, field)` for each, in the order of the file.
template <class O, class Visit>
void each_field(O& o, Visit visit) {
  visit("at_seconds", o.at_seconds);
  visit("samples", o.samples);
  visit("batches", o.batches);
  visit("epochs", o.epochs);
  visit("wait_seconds", o.wait_seconds);
  visit("storage_wait_seconds", o.storage_wait_seconds);
  visit("memory_wait_seconds", o.memory_wait_seconds);
  visit("training_seconds", o.training_seconds);
  visit("reads", o.reads);
  visit("read_bytes", o.read_bytes);
  visit("read_seconds", o.read_seconds);
  visit("failed_reads", o.failed_reads);
  visit("late_reads", o.late_reads);
  visit("tasks", o.tasks);
  visit("busy_seconds", o.busy_seconds);
  visit("cpu_seconds", o.cpu_seconds);
  visit("cache_hits", o.cache_hits);
  visit("cache_misses", o.cache_misses);
  visit("threads", o.threads);
  visit("max_in_flight", o.in_flight);
  visit("lookahead", o.lookahead);
  visit("part_bytes", o.part_bytes);
  visit("most_threads", o.most_threads);
  visit("most_in_flight", o.most_in_flight);
  visit("cores", o.cores);
  visit("most_bytes_per_second", o.most_bytes_per_second);
  visit("most_reads_per_second", o.most_reads_per_second);
  visit("memory_bytes", o.memory_bytes);
  visit("data_bytes", o.data_bytes);
}

Error not_one(std::string_view why) {
  return invalid(
      "this is no observation of a loader: {}; traces of the tuner have one "
      "JSON object a line",
      why);
}

}  // namespace

std::string to_json(const Observation& observation) {
  nlohmann::ordered_json json;
  each_field(observation,
             [&](const char* name, const auto& field) { json[name] = field; });
  return json.dump();
}

Result<Observation> parse_observation(std::string_view line) {
  const nlohmann::json json =
      nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return not_one("it is not a JSON object");
  Observation found;
  std::string wrong;
  each_field(found, [&](const char* name, auto& field) {
    const auto at = json.find(name);
    if (at == json.end()) return;
    const double value = at->is_number() ? at->template get<double>() : -1;
    if (!(value >= 0 && value <= kMostCount)) {
      wrong = name;
      return;
    }
    field = at->template get<std::remove_reference_t<decltype(field)>>();
  });
  if (!wrong.empty()) {
    return not_one(fmt::format("\"{}\" is not a number from 0 to {:g}", wrong,
                               kMostCount));
  }
  for (const auto& [name, value] :
       {std::pair{"threads", found.threads},
        std::pair{"max_in_flight", found.in_flight},
        std::pair{"most_threads", found.most_threads},
        std::pair{"most_in_flight", found.most_in_flight}}) {
    if (value == 0) return not_one(fmt::format("\"{}\" is 0", name));
  }
  if (found.cores <= 0) return not_one("\"cores\" is 0");
  return found;
}

}  // namespace leat
