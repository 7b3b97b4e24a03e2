// Each row of kRows has a metric and the function that writes its samples. The
// metrics of job_counters() follow.

#include "leat/agent/exposition.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "leat/agent/public_text.h"

namespace leat {
namespace {

using Label = std::pair<std::string_view, std::string_view>;

std::string escaped(std::string_view value) {
  std::string out;
  for (const char c : public_text(value)) {
    if (c == '\\' || c == '"') out += '\\';
    out += c;
  }
  return out;
}

/// Writes the samples of one metric.
class Samples {
 public:
  Samples(std::string& out, std::string_view name) : out_(out), name_(name) {}

  void add(double value, std::initializer_list<Label> labels = {}) {
    if (!std::isfinite(value)) return;
    out_ += name_;
    char before = '{';
    for (const auto& [label, text] : labels) {
      out_ += before;
      out_.append(label).append("=\"").append(escaped(text)).append("\"");
      before = ',';
    }
    if (before == ',') out_ += '}';
    // Reads back as the same double.
    fmt::format_to(std::back_inserter(out_), " {}\n", value);
  }
  template <class T>
  void add_known(const std::optional<T>& value,
                 std::initializer_list<Label> labels) {
    if (value) add(static_cast<double>(*value), labels);
  }

 private:
  std::string& out_;
  std::string_view name_;
};

struct Row {
  std::string_view name;
  std::string_view kind;
  std::string_view labels;
  std::string_view help;
  void (*of_node)(const NodeView&, Samples&) = nullptr;
  void (*of_job)(const JobView&, Samples&) = nullptr;
};

constexpr auto kRows = std::to_array<Row>({
    {"leat_agent_node_cores", "gauge", "", "Cores that the node has for us.",
     [](const NodeView& v, Samples& s) { s.add(v.cores); }},
    {"leat_agent_busy_cores", "gauge", "of",
     "Cores in use by jobs and by processes outside of Leat.",
     [](const NodeView& v, Samples& s) {
       s.add(std::max(v.cores_busy - v.cores_busy_outside, 0.0),
             {{"of", "jobs"}});
       s.add(v.cores_busy_outside, {{"of", "outside"}});
     }},
    {"leat_agent_node_memory_bytes", "gauge", "",
     "Memory that the node has for us.",
     [](const NodeView& v, Samples& s) { s.add(double(v.memory_bytes)); }},
    {"leat_agent_node_requests", "gauge", "",
     "Requests that all jobs together may have in flight.",
     [](const NodeView& v, Samples& s) { s.add(double(v.in_flight)); }},
    {"leat_agent_node_joules_total", "counter", "of",
     "Energy of the node's processors, where RAPL can be read, and NVIDIA "
     "devices, where NVML tells, whoever used them, since the agent began.",
     [](const NodeView& v, Samples& s) {
       s.add_known(v.processor_joules, {{"of", "processors"}});
       s.add_known(v.accelerator_joules, {{"of", "accelerators"}});
     }},
    {"leat_agent_link_limit_bytes_per_second", "gauge", "bucket",
     "Rate at which all jobs together may read, where that is limited: of a "
     "bucket, or, with an empty name, of all.",
     [](const NodeView& v, Samples& s) {
       for (const LinkView& link : v.links) {
         s.add(link.bytes_per_second, {{"bucket", link.bucket}});
       }
     }},
    {"leat_agent_link_bytes_per_second", "gauge", "bucket",
     "Rate at which the jobs read that read there, wherever they do; near the "
     "limit, they wait for each other.",
     [](const NodeView& v, Samples& s) {
       for (const LinkView& link : v.links) {
         s.add(link.read_bytes_per_second, {{"bucket", link.bucket}});
       }
     }},
    {"leat_agent_jobs", "gauge", "", "Jobs that are registered.",
     [](const NodeView& v, Samples& s) { s.add(double(v.jobs.size())); }},
    {"leat_agent_decisions_total", "counter", "",
     "Decisions taken; a steady rise means that shares do not settle.",
     [](const NodeView& v, Samples& s) {
       s.add(v.decisions.empty() ? 0 : double(v.decisions.back().number));
     }},
    {"leat_agent_job_info", "gauge", "job name dataset user",
     "1: what the id of a job stands for.", nullptr,
     [](const JobView& j, Samples& s) {
       s.add(1, {{"job", j.id},
                 {"name", j.name},
                 {"dataset", j.dataset},
                 {"user", fmt::to_string(j.user)}});
     }},
    {"leat_agent_job_start_timestamp_seconds", "gauge", "job",
     "When the job registered, as Unix time.", nullptr,
     [](const JobView& j, Samples& s) {
       s.add(j.since_seconds, {{"job", j.id}});
     }},
    {"leat_agent_job_ranks", "gauge", "job", "Ranks of the job on this node.",
     nullptr,
     [](const JobView& j, Samples& s) {
       s.add(j.local_ranks, {{"job", j.id}});
     }},
    {"leat_agent_share_threads", "gauge", "job",
     "Threads that the job's ranks may decode with.", nullptr,
     [](const JobView& j, Samples& s) {
       s.add_known(j.share.threads, {{"job", j.id}});
     }},
    {"leat_agent_share_requests", "gauge", "job",
     "Requests that the job's ranks may have in flight.", nullptr,
     [](const JobView& j, Samples& s) {
       s.add_known(j.share.in_flight, {{"job", j.id}});
     }},
    {"leat_agent_share_bytes_per_second", "gauge", "job",
     "Rate at which the job may read from its store.", nullptr,
     [](const JobView& j, Samples& s) {
       s.add_known(j.share.bytes_per_second, {{"job", j.id}});
     }},
    {"leat_agent_share_cache_bytes", "gauge", "job tier",
     "Cache that the job may fill.", nullptr,
     [](const JobView& j, Samples& s) {
       s.add_known(j.share.ram_bytes, {{"job", j.id}, {"tier", "ram"}});
       s.add_known(j.share.disk_bytes, {{"job", j.id}, {"tier", "disk"}});
     }},
    {"leat_agent_found_samples_per_second", "gauge", "job",
     "Speed of the job over the last seconds.", nullptr,
     [](const JobView& j, Samples& s) {
       s.add(j.found_rate, {{"job", j.id}});
     }},
    {"leat_agent_predicted_samples_per_second", "gauge", "job",
     "Speed that had been predicted of the job for the same time.", nullptr,
     [](const JobView& j, Samples& s) {
       if (j.predicted_rate > 0) s.add(j.predicted_rate, {{"job", j.id}});
     }},
    {"leat_agent_ceiling_samples_per_second", "gauge", "job",
     "Speed that the job's training alone would allow.", nullptr,
     [](const JobView& j, Samples& s) {
       s.add_known(j.compute_ceiling, {{"job", j.id}});
     }},
    {"leat_agent_prediction_confidence_ratio", "gauge", "job",
     "How sure the prediction is, from 0 to 1.", nullptr,
     [](const JobView& j, Samples& s) {
       s.add(j.confidence, {{"job", j.id}});
     }},
    {"leat_agent_wait_ratio", "gauge", "job",
     "Part of its time that the job waits for data; a rise means that it is "
     "starved.",
     nullptr,
     [](const JobView& j,
        Samples& s) { s.add(j.wait_fraction, {{"job", j.id}}); }},
    {"leat_agent_stall_ratio", "gauge", "job cause",
     "Part of its time that the job waits for this cause.", nullptr,
     [](const JobView& j, Samples& s) {
       for (const auto& [cause, fraction] : j.stalls) {
         s.add(fraction, {{"job", j.id}, {"cause", cause}});
       }
     }},
});

/// kRows, and the metrics of job_counters(), which have no functions.
std::vector<Row> all_rows() {
  std::vector<Row> rows(kRows.begin(), kRows.end());
  for (const JobCounter* counter : job_counters()) {
    const std::string_view name = counter->exposed_as;
    if (rows.back().name == name) continue;
    rows.push_back({name, name.ends_with("_total") ? "counter" : "gauge",
                    counter->tier.empty() ? "job" : "job tier", counter->help});
  }
  return rows;
}

void add_totals_of(const JobView& job, std::string_view name,
                   Samples& samples) {
  for (const JobCounter* counter : job_counters()) {
    if (counter->exposed_as != name) continue;
    const auto total = known_total(job.totals, *counter);
    if (counter->tier.empty()) {
      samples.add_known(total, {{"job", job.id}});
    } else {
      samples.add_known(total, {{"job", job.id}, {"tier", counter->tier}});
    }
  }
}

}  // namespace

std::string exposition(const NodeView& view) {
  std::string out;
  for (const Row& row : all_rows()) {
    fmt::format_to(std::back_inserter(out), "# HELP {0} {1}\n# TYPE {0} {2}\n",
                   row.name, row.help, row.kind);
    Samples samples(out, row.name);
    if (row.of_node != nullptr) {
      row.of_node(view, samples);
      continue;
    }
    for (const JobView& job : view.jobs) {
      row.of_job != nullptr ? row.of_job(job, samples)
                            : add_totals_of(job, row.name, samples);
    }
  }
  return out;
}

std::string agent_metrics_page() {
  std::string page =
      "# Metrics of the agent\n\nThe metrics that `/metrics` of the node agent "
      "shows. "
      "Printed by `leat docs agent-metrics`; a test compares.\n\n"
      "| name | kind | labels | what it says |\n|---|---|---|---|\n";
  for (const Row& row : all_rows()) {
    fmt::format_to(std::back_inserter(page), "| `{}` | {} | {} | {} |\n",
                   row.name, row.kind, row.labels, row.help);
  }
  return page;
}

}  // namespace leat
