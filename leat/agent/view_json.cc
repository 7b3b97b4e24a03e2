#include "leat/agent/view_json.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "leat/agent/public_text.h"
#include "leat/agent/wire/job_trace_json.h"

namespace leat {
namespace {

using Json = nlohmann::ordered_json;

/// A thousandth of a second, a thread or a sample a second is enough to draw,
/// and takes a third of the bytes.
Json rounded(double value) {
  if (!std::isfinite(value)) return nullptr;
  return std::round(value * 1000) / 1000;
}

/// nlohmann writes what is not finite as null.
template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

/// A rate of 0 stands for "not known".
Json known(double rate) { return rate > 0 ? Json(rate) : Json(nullptr); }

Json links_of(const NodeView& view) {
  Json links = Json::array();
  for (const LinkView& link : view.links) {
    links.push_back(
        {{"bucket",
          link.bucket.empty() ? Json(nullptr) : Json(public_text(link.bucket))},
         {"bytes_per_second", link.bytes_per_second},
         {"read_bytes_per_second", link.read_bytes_per_second}});
  }
  return links;
}

Json node_of(const NodeView& view) {
  return {{"name", public_text(view.name)},
          {"time_seconds", view.time_seconds},
          {"objective", public_text(view.objective)},
          {"cores", view.cores},
          {"cores_busy", view.cores_busy},
          {"cores_busy_outside", view.cores_busy_outside},
          {"memory_bytes", view.memory_bytes},
          {"in_flight", view.in_flight},
          {"links", links_of(view)},
          {"processor_joules", or_null(view.processor_joules)},
          {"accelerator_joules", or_null(view.accelerator_joules)}};
}

Json share_of(const Share& share) {
  return {{"threads", or_null(share.threads)},
          {"in_flight", or_null(share.in_flight)},
          {"bytes_per_second", or_null(share.bytes_per_second)},
          {"ram_bytes", or_null(share.ram_bytes)},
          {"disk_bytes", or_null(share.disk_bytes)}};
}

Json totals_of(const JobView& job, JobCounter::Part part) {
  Json totals = Json::object();
  for (const JobCounter* counter : job_counters()) {
    if (counter->part != part) continue;
    const auto total = known_total(job.totals, *counter);
    totals[counter->key()] = total && counter->is_whole()
                                 ? Json(static_cast<std::uint64_t>(*total))
                                 : or_null(total);
  }
  return totals;
}

Json job_of(const JobView& job) {
  Json stalls = Json::object();
  for (const auto& [cause, fraction] : job.stalls) {
    stalls[public_text(cause)] = fraction;
  }
  return {{"id", public_text(job.id)},
          {"name", public_text(job.name)},
          {"dataset", public_text(job.dataset)},
          {"user", job.user},
          {"user_name", public_text(job.user_name)},
          {"pids", job.pids},
          {"local_ranks", job.local_ranks},
          {"world_size", job.world_size},
          {"since_seconds", job.since_seconds},
          {"share", share_of(job.share)},
          {"found_rate", job.found_rate},
          {"predicted_rate", known(job.predicted_rate)},
          {"confidence", job.confidence},
          {"compute_ceiling", or_null(job.compute_ceiling)},
          {"wait_fraction", job.wait_fraction},
          {"stalls", std::move(stalls)},
          {"stalled_dollars",
           or_null(known_total(job.totals, counters::kStalledDollars))},
          {"ledger", totals_of(job, JobCounter::Part::kLedger)},
          {"bottleneck", public_text(job.bottleneck)},
          {"cache", totals_of(job, JobCounter::Part::kCache)}};
}

Json decision_of(const NumberedDecision& numbered) {
  const Decision& decision = numbered.decision;
  return {{"number", numbered.number},
          {"time_seconds", numbered.time_seconds},
          {"job", public_text(decision.job)},
          {"job_name", public_text(numbered.job_name)},
          {"setting", to_string(decision.setting)},
          {"before", decision.before},
          {"after", decision.after},
          {"reason", public_text(decision.reason)},
          {"expected_gain", or_null(decision.expected_gain)},
          {"found_gain", or_null(decision.found_gain)}};
}

/// One object a job that has points, each quantity a column.
Json history_of(const NodeView& view, double points_after) {
  Json all = Json::array();
  std::map<std::string_view, std::size_t> rows;
  for (const JobPoint& point : view.history) {
    if (!(point.time_seconds > points_after)) continue;
    const auto [row, is_new] = rows.emplace(point.job, all.size());
    if (is_new) all.push_back({{"job", public_text(point.job)}});
    Json& columns = all[row->second];
    columns["time_seconds"].push_back(rounded(point.time_seconds));
    columns["threads"].push_back(rounded(point.threads));
    columns["in_flight"].push_back(rounded(point.in_flight));
    columns["found_rate"].push_back(rounded(point.found_rate));
    columns["predicted_rate"].push_back(
        point.predicted_rate > 0 ? rounded(point.predicted_rate) : nullptr);
    columns["wait_fraction"].push_back(rounded(point.wait_fraction));
    columns["bytes_per_second"].push_back(or_null(point.bytes_per_second));
    columns["ram_bytes"].push_back(or_null(point.ram_bytes));
    columns["disk_bytes"].push_back(or_null(point.disk_bytes));
  }
  return all;
}

}  // namespace

std::string view_json(const NodeView& view, const ViewSince& since) {
  Json jobs = Json::array();
  for (const JobView& job : view.jobs) jobs.push_back(job_of(job));
  Json decisions = Json::array();
  for (const NumberedDecision& decision : view.decisions) {
    if (decision.number > since.decisions_after) {
      decisions.push_back(decision_of(decision));
    }
  }
  const Json all{{"format", 1},
                 {"node", node_of(view)},
                 {"jobs", std::move(jobs)},
                 {"last_decision",
                  view.decisions.empty() ? 0 : view.decisions.back().number},
                 {"decisions", std::move(decisions)},
                 {"history", history_of(view, since.points_after)}};
  return all.dump();
}

std::string trace_json(std::string_view job, const JobTrace& trace) {
  return Json{
      {"format", 1}, {"job", public_text(job)}, {"trace", json_of(trace)}}
      .dump();
}

}  // namespace leat
