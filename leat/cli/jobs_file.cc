#include "leat/cli/jobs_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>

#include "leat/base/errors.h"
#include "leat/engine/toml_reader.h"

namespace leat {
namespace {

// A larger number is taken for a typing error.
constexpr std::uint64_t kMostNodes = 4096;
constexpr std::uint64_t kMostJobs = 10000;
constexpr std::uint64_t kMostKinds = 100;
constexpr std::uint64_t kMostThreads = 4096;
constexpr std::uint64_t kMostInFlight = 1 << 20;
constexpr std::uint64_t kMostSamples = std::uint64_t{1} << 40;
constexpr std::uint64_t kMostEpochs = 1000000;
constexpr double kMostSeconds = 1e7;

/// Jobs that are alike but for a spread.
struct Kind {
  std::string name;
  std::uint64_t count = 1;
  double spread = 0;
  SimulatedJob job;
};

double whole(std::uint64_t value) { return static_cast<double>(value); }

/// A speed or amount that is not given bounds nothing.
double or_unbounded(double value) { return value > 0 ? value : kUnbounded; }

double part(TomlReader& reader, std::string_view key, double otherwise) {
  const double value = reader.amount(key, otherwise);
  if (value > 1) reader.refuse(key, "must be a number from 0 to 1");
  return value;
}

double seconds(TomlReader& reader, std::string_view key, double otherwise) {
  const double value = reader.seconds(key, otherwise);
  if (value > kMostSeconds) reader.refuse(key, "is more than 10000000 s");
  return value;
}

Result<Kind> read_kind(const toml::table& table, const std::string& where,
                       const std::vector<std::string>& buckets) {
  TomlReader reader(table, where);
  Kind kind;
  kind.name = reader.text("name", where);
  kind.count = reader.number("count", 1, kMostJobs, 1);
  kind.spread = part(reader, "spread", 0);
  SimulatedJob& job = kind.job;
  job.nodes =
      static_cast<std::uint32_t>(reader.number("nodes", 1, kMostNodes, 1));
  job.dataset_samples = whole(reader.number("samples", 1, kMostSamples));
  job.samples = job.dataset_samples *
                whole(reader.number("epochs", 1, kMostEpochs, 1)) / job.nodes;
  JobSpeed& truth = job.truth;
  truth.compute_ceiling = or_unbounded(reader.amount("ceiling", 0));
  const double decode = seconds(reader, "decode", 0);
  truth.rate_per_thread = decode > 0 ? 1 / decode : kUnbounded;
  truth.latency_seconds = seconds(reader, "latency", 0);
  truth.reads_per_sample = reader.amount("reads_per_sample", 1);
  truth.read_bytes_per_sample = whole(reader.bytes("sample_bytes", 0));
  job.kept_bytes = whole(reader.bytes("kept_bytes", 0));
  truth.saved_seconds = seconds(reader, "saved", 0);
  truth.dataset_bytes =
      job.dataset_samples *
      (job.kept_bytes > 0 ? job.kept_bytes : truth.read_bytes_per_sample);
  if (reader.has("bucket")) {
    const std::string name = reader.text("bucket");
    const auto found = std::ranges::find(buckets, name);
    if (found == buckets.end()) {
      reader.refuse("bucket", "is the name of none of the [[buckets]]");
    }
    job.buckets = {static_cast<std::size_t>(found - buckets.begin())};
  }
  if (truth.saved_seconds > decode) {
    reader.refuse("saved", "is part of decode, and no more");
  }
  if (!std::isfinite(truth.compute_ceiling) && decode <= 0) {
    reader.refuse("ceiling",
                  "or decode must be given: nothing else bounds a "
                  "job that a cache holds whole");
  }
  LEAT_TRY_VOID(reader.done());
  return kind;
}

/// [[buckets]]: their names, in the order of their limits in `node`.
Result<std::vector<std::string>> read_buckets(const toml::array* tables,
                                              NodeResources& node) {
  std::vector<std::string> names;
  const std::size_t count = tables == nullptr ? 0 : tables->size();
  for (std::size_t i = 0; i < count; ++i) {
    TomlReader reader(*tables->get(i)->as_table(),
                      fmt::format("buckets {}", i + 1));
    names.push_back(reader.text("name"));
    if (std::ranges::count(names, names.back()) > 1) {
      reader.refuse("name", "is that of another bucket, too");
    }
    const std::uint64_t bandwidth = reader.bytes("bandwidth");
    if (bandwidth == 0) reader.refuse("bandwidth", "must be more than 0");
    node.bucket_bytes_per_second.push_back(whole(bandwidth));
    LEAT_TRY_VOID(reader.done());
  }
  return names;
}

/// Draws the times at which `count` jobs come, in ascending order.
std::vector<double> arrivals(std::size_t shape, double over, std::size_t count,
                             std::mt19937_64& random) {
  std::uniform_real_distribution<double> part_of(0, 1);
  std::vector<double> times;
  for (std::size_t i = 0; i < count; ++i) {
    switch (shape) {
      case 0:  // All at once.
        times.push_back(0);
        break;
      case 1:  // At any time alike.
        times.push_back(over * part_of(random));
        break;
      default: {  // Four waves: in the first tenth of each quarter.
        const double wave = std::floor(4 * part_of(random));
        times.push_back(over / 4 * (wave + 0.1 * part_of(random)));
      }
    }
  }
  std::sort(times.begin(), times.end());
  return times;
}

std::vector<SimulatedJob> jobs_of(const std::vector<Kind>& kinds,
                                  std::size_t shape, double over,
                                  std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> part_of(-1, 1);
  std::vector<SimulatedJob> jobs;
  for (const Kind& kind : kinds) {
    for (std::uint64_t i = 0; i < kind.count; ++i) {
      SimulatedJob job = kind.job;
      job.name = fmt::format("{} {}", kind.name, i + 1);
      const auto spread = [&] {
        return std::exp2(2 * kind.spread * part_of(random));
      };
      job.samples *= spread();
      job.truth.compute_ceiling *= spread();
      const double faster = spread();
      job.truth.rate_per_thread *= faster;
      job.truth.saved_seconds /= faster;
      job.truth.latency_seconds *= spread();
      jobs.push_back(std::move(job));
    }
  }
  std::shuffle(jobs.begin(), jobs.end(), random);
  const std::vector<double> times = arrivals(shape, over, jobs.size(), random);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    jobs[i].arrives_seconds = times[i];
  }
  return jobs;
}

/// All but the jobs.
void read_cluster(TomlReader& reader, SharingSimulation& simulation) {
  simulation.nodes =
      static_cast<std::uint32_t>(reader.number("nodes", 1, kMostNodes));
  simulation.jobs_per_node = static_cast<std::uint32_t>(
      reader.number("jobs_per_node", 1, kMostJobs, 8));
  NodeResources& node = simulation.node;
  node.threads = whole(reader.number("threads", 1, kMostThreads));
  node.in_flight =
      or_unbounded(whole(reader.number("max_in_flight", 0, kMostInFlight, 0)));
  node.bytes_per_second = or_unbounded(whole(reader.bytes("bandwidth", 0)));
  node.cache_bytes = whole(reader.bytes("cache", 0));
  simulation.sharing.allocation.floor = part(reader, "floor", 0.5);
  simulation.noise = part(reader, "noise", 0.03);
  simulation.seed = reader.number("seed", 0, std::uint64_t{1} << 62, 0);
}

}  // namespace

Result<std::vector<NamedSharing>> parse_jobs_file(std::string_view text,
                                                  const std::string& name) {
  static constexpr std::array<std::string_view, 3> kShapes = {"burst", "steady",
                                                              "waves"};
  LEAT_TRY(const toml::table root, parse_toml(text, name));
  TomlReader reader(root, name);
  SharingSimulation cluster;
  read_cluster(reader, cluster);
  const toml::array* bucket_tables = reader.tables("buckets");
  const toml::array* job_tables = reader.tables("jobs");
  const toml::array* arrival_tables = reader.tables("arrivals");
  LEAT_TRY_VOID(reader.done());
  if (job_tables == nullptr || job_tables->size() > kMostKinds ||
      (arrival_tables != nullptr && arrival_tables->size() > kMostKinds)) {
    return invalid(
        "{} must have between 1 and {} [[jobs]], and at most as many "
        "[[arrivals]]",
        name, kMostKinds);
  }
  if (bucket_tables != nullptr && bucket_tables->size() > kMostKinds) {
    return invalid("{} has {} [[buckets]]: at most {}", name,
                   bucket_tables->size(), kMostKinds);
  }
  LEAT_TRY(const std::vector<std::string> buckets,
           read_buckets(bucket_tables, cluster.node));
  std::vector<Kind> kinds;
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < job_tables->size(); ++i) {
    LEAT_TRY(Kind kind, read_kind(*job_tables->get(i)->as_table(),
                                  fmt::format("jobs {}", i + 1), buckets));
    count += kind.count;
    kinds.push_back(std::move(kind));
  }
  if (count > kMostJobs) {
    return invalid("{} has {} jobs: at most {}", name, count, kMostJobs);
  }
  std::vector<NamedSharing> runs;
  const std::size_t shapes =
      arrival_tables == nullptr ? 0 : arrival_tables->size();
  for (std::size_t i = 0; i < shapes; ++i) {
    TomlReader one(*arrival_tables->get(i)->as_table(),
                   fmt::format("arrivals {}", i + 1));
    const std::size_t shape = one.choice("shape", kShapes);
    NamedSharing run{one.text("name", kShapes[shape]), cluster};
    const double over = seconds(one, "over", 0);
    LEAT_TRY_VOID(one.done());
    run.simulation.jobs = jobs_of(kinds, shape, over, cluster.seed);
    runs.push_back(std::move(run));
  }
  if (runs.empty()) {
    runs.push_back({"burst", cluster});
    runs.back().simulation.jobs = jobs_of(kinds, 0, 0, cluster.seed);
  }
  return runs;
}

}  // namespace leat
