#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "leat/agent/public_text.h"
#include "leat/agent/view_json.h"
#include "leat/base/errors.h"

namespace leat {
namespace {

using Json = nlohmann::json;

constexpr int kFormat = 1;

/// Null if there is no such member, or if `object` is not an object.
const Json& member(const Json& object, const char* name) {
  static const Json nothing;
  if (!object.is_object()) return nothing;
  const auto found = object.find(name);
  return found == object.end() ? nothing : *found;
}

/// The elements of a list; none if it is not one.
const Json& list(const Json& object, const char* name) {
  static const Json empty = Json::array();
  const Json& found = member(object, name);
  return found.is_array() ? found : empty;
}

std::string text_of(const Json& object, const char* name) {
  const Json& found = member(object, name);
  return found.is_string() ? public_text(found.get_ref<const std::string&>())
                           : std::string();
}

std::optional<double> number_of(const Json& value) {
  if (!value.is_number()) return std::nullopt;
  const double number = value.get<double>();
  return std::isfinite(number) ? std::optional(number) : std::nullopt;
}

double number_of(const Json& object, const char* name) {
  return number_of(member(object, name)).value_or(0);
}

/// A whole number that `T` can hold and a double is sure of.
template <class T>
std::optional<T> count_of(const Json& value) {
  const std::optional<double> number = number_of(value);
  constexpr double kMost =
      std::min(double(std::numeric_limits<T>::max()), 9'007'199'254'740'992.0);
  if (!number || *number < 0 || *number > kMost) return std::nullopt;
  return static_cast<T>(*number);
}

template <class T>
void read_count(const Json& object, const char* name, T& into) {
  into = count_of<T>(member(object, name)).value_or(0);
}

template <class T>
void read_count(const Json& object, const char* name, std::optional<T>& into) {
  into = count_of<T>(member(object, name));
}

void read_totals(const Json& object, JobCounter::Part part, JobTotals& into) {
  for (const JobCounter* counter : job_counters()) {
    if (counter->part != part) continue;
    const Json& told = member(object, counter->key());
    std::optional<double> total = number_of(told);
    if (counter->is_whole()) total = count_of<std::uint64_t>(told);
    if (total) into[counter] = *total;
  }
}

JobView job_of(const Json& told) {
  JobView job;
  job.id = text_of(told, "id");
  job.name = text_of(told, "name");
  job.dataset = text_of(told, "dataset");
  job.bottleneck = text_of(told, "bottleneck");
  read_count(told, "user", job.user);
  job.user_name = text_of(told, "user_name");
  for (const Json& pid : list(told, "pids")) {
    job.pids.push_back(count_of<std::int32_t>(pid).value_or(0));
  }
  read_count(told, "local_ranks", job.local_ranks);
  read_count(told, "world_size", job.world_size);
  job.since_seconds = number_of(told, "since_seconds");
  const Json& share = member(told, "share");
  read_count(share, "threads", job.share.threads);
  read_count(share, "in_flight", job.share.in_flight);
  read_count(share, "bytes_per_second", job.share.bytes_per_second);
  read_count(share, "ram_bytes", job.share.ram_bytes);
  read_count(share, "disk_bytes", job.share.disk_bytes);
  job.found_rate = number_of(told, "found_rate");
  job.predicted_rate = number_of(told, "predicted_rate");
  job.confidence = number_of(told, "confidence");
  job.compute_ceiling = number_of(member(told, "compute_ceiling"));
  job.wait_fraction = number_of(told, "wait_fraction");
  const Json& stalls = member(told, "stalls");
  if (stalls.is_object()) {
    for (const auto& [cause, fraction] : stalls.items()) {
      job.stalls[public_text(cause)] = number_of(fraction).value_or(0);
    }
  }
  read_totals(member(told, "ledger"), JobCounter::Part::kLedger, job.totals);
  read_totals(member(told, "cache"), JobCounter::Part::kCache, job.totals);
  return job;
}

/// Nullopt if it changes nothing that we know.
std::optional<NumberedDecision> decision_of(const Json& told) {
  NumberedDecision numbered;
  read_count(told, "number", numbered.number);
  numbered.time_seconds = number_of(told, "time_seconds");
  Decision& decision = numbered.decision;
  const std::string setting = text_of(told, "setting");
  for (const Setting known :
       {Setting::kThreads, Setting::kInFlight, Setting::kLookahead,
        Setting::kPartBytes, Setting::kBytesPerSecond, Setting::kRamBytes,
        Setting::kDiskBytes}) {
    if (to_string(known) != setting) continue;
    decision.setting = known;
    decision.job = text_of(told, "job");
    numbered.job_name = text_of(told, "job_name");
    // Bytes and counts are never below zero, nor beyond what can be counted.
    decision.before =
        double(count_of<std::uint64_t>(member(told, "before")).value_or(0));
    decision.after =
        double(count_of<std::uint64_t>(member(told, "after")).value_or(0));
    decision.reason = text_of(told, "reason");
    decision.expected_gain = number_of(member(told, "expected_gain"));
    decision.found_gain = number_of(member(told, "found_gain"));
    return numbered;
  }
  return std::nullopt;
}

void read_history(const Json& told, std::vector<JobPoint>& into) {
  const std::string job = text_of(told, "job");
  const Json& times = list(told, "time_seconds");
  const auto at = [&told](const char* name, std::size_t i) {
    const Json& column = list(told, name);
    return i < column.size() ? number_of(column[i]) : std::nullopt;
  };
  for (std::size_t i = 0; i < times.size(); ++i) {
    into.push_back({.time_seconds = number_of(times[i]).value_or(0),
                    .job = job,
                    .threads = at("threads", i).value_or(0),
                    .in_flight = at("in_flight", i).value_or(0),
                    .found_rate = at("found_rate", i).value_or(0),
                    .predicted_rate = at("predicted_rate", i).value_or(0),
                    .wait_fraction = at("wait_fraction", i).value_or(0),
                    .bytes_per_second = at("bytes_per_second", i),
                    .ram_bytes = at("ram_bytes", i),
                    .disk_bytes = at("disk_bytes", i)});
  }
}

}  // namespace

Result<NodeView> read_view_json(std::string_view text) {
  const Json told = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (member(told, "format") != kFormat) {
    return corrupt("this is not what an agent of this version of Leat shows");
  }
  NodeView view;
  const Json& node = member(told, "node");
  view.name = text_of(node, "name");
  view.time_seconds = number_of(node, "time_seconds");
  view.objective = text_of(node, "objective");
  view.cores = number_of(node, "cores");
  view.cores_busy = number_of(node, "cores_busy");
  view.cores_busy_outside = number_of(node, "cores_busy_outside");
  read_count(node, "memory_bytes", view.memory_bytes);
  read_count(node, "in_flight", view.in_flight);
  for (const Json& link : list(node, "links")) {
    view.links.push_back(
        {.bucket = text_of(link, "bucket"),
         .bytes_per_second = number_of(link, "bytes_per_second"),
         .read_bytes_per_second = number_of(link, "read_bytes_per_second")});
  }
  view.processor_joules = number_of(member(node, "processor_joules"));
  view.accelerator_joules = number_of(member(node, "accelerator_joules"));
  for (const Json& job : list(told, "jobs")) view.jobs.push_back(job_of(job));
  for (const Json& decision : list(told, "decisions")) {
    if (auto read = decision_of(decision)) {
      view.decisions.push_back(*std::move(read));
    }
  }
  for (const Json& job : list(told, "history")) read_history(job, view.history);
  return view;
}

}  // namespace leat
