// Time goes in ticks, and jumps where nothing runs. In a tick every job goes at
// the speed of its slowest part; parts of jobs that are decided by reports then
// report, and their node decides what holds in the next tick: as the agent does
// it, with the same code.

#include "leat/tune/sharing_simulator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <numeric>
#include <optional>
#include <random>
#include <utility>

#include "leat/base/errors.h"
#include "leat/tune/shared_rates.h"

namespace leat {
namespace {

constexpr double kStarved = 0.4;  // A share of an even split's rate.

/// The truth to be found out, in the model's terms.
Claim truth_of(const SimulatedJob& job) {
  Claim claim;
  claim.speed = job.truth;
  claim.buckets = job.buckets;
  return claim;
}

/// One job on one of its nodes.
struct Part {
  std::size_t job = 0;
  double rate = 0;       ///< That its data could come at.
  double even_rate = 0;  ///< That it could come at under an even split.
};

struct Node {
  std::vector<Part> parts;
  NodeSharing sharing;
  bool has_changed = true;
};

class Simulator {
 public:
  Simulator(const SharingSimulation& simulation,
            const std::function<void(std::size_t jobs)>& ended)
      : simulation_(simulation), ended_(ended), random_(simulation.seed) {
    SharingOptions options = simulation.sharing;
    options.allocation.objective = simulation.policy == SharingPolicy::kFairness
                                       ? Objective::kFairness
                                       : Objective::kThroughput;
    for (std::uint32_t i = 0; i < simulation.nodes; ++i) {
      nodes_.push_back({{}, NodeSharing(simulation.node, options)});
    }
    running_.resize(simulation.jobs.size());
    report_.jobs.resize(simulation.jobs.size());
    coming_.resize(simulation.jobs.size());
    std::iota(coming_.begin(), coming_.end(), 0);
    std::stable_sort(coming_.begin(), coming_.end(),
                     [&](std::size_t a, std::size_t b) {
                       return simulation.jobs[a].arrives_seconds <
                              simulation.jobs[b].arrives_seconds;
                     });
    for (const SimulatedJob& job : simulation.jobs) {
      names_.push_back(fmt::format("{:04}", names_.size()));
      alone_.push_back(rate_alone(simulation.node, truth_of(job)));
    }
  }

  Result<SharingReport> run(const std::stop_token& stop) {
    const double tick = simulation_.tick_seconds;
    double now = coming_.empty() ? 0 : arrival_of(coming_.front());
    const double first = now;
    while (!coming_.empty() || count_ > 0) {
      if (stop.stop_requested()) {
        return Error(ErrorCode::kCancelled, "stopped");
      }
      if (now - first > simulation_.most_seconds) {
        return invalid(
            "not done after {:.0f} s, jobs: {}; give them fewer samples",
            simulation_.most_seconds, coming_.size() + count_);
      }
      if (count_ == 0) now = std::max(now, arrival_of(coming_.front()));
      begin_jobs(now);
      find_rates();
      step(now, tick);
      now += tick;
      if (is_decided_by_reports()) decide(now);
    }
    finish(first);
    return std::move(report_);
  }

 private:
  struct Running {
    std::vector<std::size_t> nodes;
    double done_after = 0;  ///< Samples; less than 0 if it goes on.
    double begun = 0;
    std::vector<double> errors;
  };

  bool is_decided_by_reports() const {
    return simulation_.policy == SharingPolicy::kThroughput ||
           simulation_.policy == SharingPolicy::kFairness;
  }

  double arrival_of(std::size_t job) const {
    return simulation_.jobs[job].arrives_seconds;
  }

  void begin_jobs(double now) {
    while (!coming_.empty() && arrival_of(coming_.front()) <= now) {
      if (!begin(coming_.front(), now)) return;
      coming_.pop_front();
    }
  }

  /// Onto the nodes with the fewest jobs; false if these are full.
  bool begin(std::size_t index, double now) {
    const SimulatedJob& job = simulation_.jobs[index];
    std::vector<std::size_t> order(nodes_.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) {
                       return nodes_[a].parts.size() < nodes_[b].parts.size();
                     });
    order.resize(job.nodes);
    if (nodes_[order.back()].parts.size() >= simulation_.jobs_per_node) {
      return false;
    }
    for (const std::size_t node : order) {
      nodes_[node].parts.push_back({.job = index});
      nodes_[node].has_changed = true;
      if (is_decided_by_reports()) {
        nodes_[node].sharing.arrive(names_[index],
                                    {.samples_to_do = job.samples,
                                     .dataset_samples = job.dataset_samples,
                                     .buckets = job.buckets});
        nodes_[node].sharing.decide(now);
      }
    }
    running_[index] = {std::move(order), job.samples, now, {}};
    report_.jobs[index].waited_seconds = now - job.arrives_seconds;
    ++count_;
    return true;
  }

  std::vector<Claim> claims_of(const Node& node) const {
    std::vector<Claim> claims;
    for (const Part& part : node.parts) {
      claims.push_back(truth_of(simulation_.jobs[part.job]));
    }
    return claims;
  }

  const Grant& grant_of(const Node& node, const Part& part) const {
    return node.sharing.jobs().find(names_[part.job])->second.grant;
  }

  void find_rates() {
    for (Node& node : nodes_) {
      if (!std::exchange(node.has_changed, false) || node.parts.empty()) {
        continue;
      }
      const std::vector<Claim> claims = claims_of(node);
      const std::vector<double> even = rates_of(
          simulation_.node, claims, even_split(simulation_.node, claims));
      const std::vector<double> rates = rates_by_policy(node, claims);
      for (std::size_t i = 0; i < node.parts.size(); ++i) {
        node.parts[i].rate = rates[i];
        node.parts[i].even_rate = even[i];
      }
    }
  }

  std::vector<double> rates_by_policy(const Node& node,
                                      const std::vector<Claim>& claims) const {
    switch (simulation_.policy) {
      case SharingPolicy::kEven:
        return rates_of(simulation_.node, claims,
                        even_split(simulation_.node, claims));
      case SharingPolicy::kUnshared:
        return rates_by_demand(simulation_.node, claims);
      case SharingPolicy::kWorkersOnly:
        return rates_of(simulation_.node, claims,
                        workers_only(simulation_.node, claims));
      case SharingPolicy::kSplit:
        return split_rates(simulation_.node, claims,
                           {.objective = Objective::kThroughput,
                            .floor = simulation_.sharing.allocation.floor});
      default:
        break;
    }
    std::vector<Grant> grants;
    for (const Part& part : node.parts) grants.push_back(grant_of(node, part));
    return rates_of(simulation_.node, claims, grants);
  }

  /// All parts at the slowest's speed, which is what the others' ranks wait
  /// for inside a step.
  void step(double now, double tick) {
    std::vector<double>& slowest = slowest_;
    std::vector<double>& even = even_;
    slowest.assign(running_.size(), kUnbounded);
    even.assign(running_.size(), kUnbounded);
    for (const Node& node : nodes_) {
      for (const Part& part : node.parts) {
        slowest[part.job] = std::min(slowest[part.job], part.rate);
        even[part.job] = std::min(even[part.job], part.even_rate);
      }
    }
    if (is_decided_by_reports()) report(tick);
    for (const Node& node : nodes_) {
      report_.job_seconds += tick * static_cast<double>(node.parts.size());
      if (node.parts.empty()) continue;
      double least = 1;
      for (const Part& part : node.parts) {
        least = std::min(least, slowest[part.job] / alone_[part.job]);
      }
      least_sum_ += least * tick;
      node_seconds_ += tick;
    }
    for (std::size_t i = 0; i < running_.size(); ++i) {
      Running& running = running_[i];
      if (running.nodes.empty()) continue;
      if (slowest[i] < kStarved * even[i] * (1 - 1e-9)) {
        report_.jobs[i].starved_seconds += tick;
      }
      const double leaves = simulation_.jobs[i].leaves_seconds;
      const double done = slowest[i] * tick;
      if (leaves > 0 ? now + tick < leaves : done < running.done_after) {
        running.done_after -= done;
        continue;
      }
      const double rest = leaves > 0 ? done : std::max(0.0, running.done_after);
      running.done_after -= rest;
      // Without a floor, one may stand still until it goes.
      end(i, now + (slowest[i] > 0 ? rest / slowest[i] : tick));
    }
  }

  /// The number of epochs that a job begins while it does `samples` more.
  double epochs_begun(std::size_t job, double samples) const {
    const double epoch = simulation_.jobs[job].dataset_samples;
    if (epoch <= 0) return 0;
    const double left = running_[job].done_after;
    return std::floor(left / epoch) - std::floor((left - samples) / epoch);
  }

  void note_errors(const Node& node) {
    for (const Part& part : node.parts) {
      const SharingJob& job =
          node.sharing.jobs().find(names_[part.job])->second;
      if (job.foretold_rate <= 0) continue;
      running_[part.job].errors.push_back(
          std::abs(job.fit.found_rate() / job.foretold_rate - 1));
    }
  }

  void report(double tick) {
    std::uniform_real_distribution<double> part_of(-1, 1);
    const auto noisy = [&](double value) {
      return value * (1 + simulation_.noise * part_of(random_));
    };
    for (Node& node : nodes_) {
      for (const Part& part : node.parts) {
        const SimulatedJob& job = simulation_.jobs[part.job];
        const std::string& name = names_[part.job];
        const double rate = slowest_[part.job];
        JobSpeed truth = job.truth;
        // The bound by its other nodes looks like training from here.
        if (part.rate > rate) truth.compute_ceiling = rate;
        JobReport said = report_of(truth, grant_of(node, part), rate, tick);
        said.kept_bytes = job.kept_bytes;
        said.samples = noisy(said.samples);
        said.busy_seconds = noisy(said.busy_seconds);
        said.read_seconds = noisy(said.read_seconds);
        said.read_bytes = noisy(said.read_bytes);
        said.epochs = epochs_begun(part.job, rate * tick);
        node.sharing.report(name, said);
      }
    }
  }

  /// Exchanges what the agents of a job's nodes tell each other.
  void agree() {
    for (std::size_t i = 0; i < running_.size(); ++i) {
      const std::vector<std::size_t>& at = running_[i].nodes;
      if (at.size() < 2) continue;
      for (const std::size_t here : at) {
        std::optional<Pace> elsewhere;
        for (const std::size_t there : at) {
          if (there == here) continue;
          const auto pace = job_on(there, i).pace();
          if (!pace) continue;
          elsewhere = elsewhere ? joined(*elsewhere, *pace) : *pace;
        }
        if (elsewhere) {
          nodes_[here].sharing.set_elsewhere(names_[i], *elsewhere);
        }
      }
    }
  }

  const SharingJob& job_on(std::size_t node, std::size_t job) const {
    return nodes_[node].sharing.jobs().find(names_[job])->second;
  }

  void decide(double now) {
    agree();
    for (Node& node : nodes_) {
      if (node.sharing.decide(now)) node.has_changed = true;
      note_errors(node);
    }
  }

  void end(std::size_t index, double at) {
    SimulatedOutcome& outcome = report_.jobs[index];
    Running& running = running_[index];
    outcome.finished_seconds = at;
    outcome.run_seconds = at - running.begun;
    const double alone =
        (simulation_.jobs[index].samples - running.done_after) / alone_[index];
    alone_seconds_ += alone;
    outcome.speed = std::min(1.0, alone / outcome.run_seconds);
    for (const std::size_t node : running.nodes) {
      auto& parts = nodes_[node].parts;
      std::erase_if(parts, [&](const Part& part) { return part.job == index; });
      nodes_[node].has_changed = true;
      if (!is_decided_by_reports()) continue;
      outcome.changes +=
          nodes_[node].sharing.jobs().find(names_[index])->second.changes;
      nodes_[node].sharing.leave(names_[index]);
    }
    outcome.prediction_error = median(running.errors);
    running = {};
    --count_;
    ++ended_jobs_;
    if (ended_) ended_(ended_jobs_);
  }

  static double median(std::vector<double>& values) {
    if (values.empty()) return 0;
    const auto middle =
        values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
  }

  void finish(double first) {
    double ran = 0;
    double sum = 0;
    double squares = 0;
    double starved = 0;
    double changes = 0;
    std::vector<double> errors;
    report_.least_speed = report_.jobs.empty() ? 0 : 1;
    for (std::size_t i = 0; i < report_.jobs.size(); ++i) {
      const SimulatedOutcome& job = report_.jobs[i];
      ran += job.run_seconds;
      sum += job.speed;
      squares += job.speed * job.speed;
      starved += job.starved_seconds;
      changes += static_cast<double>(job.changes);
      errors.push_back(job.prediction_error);
      report_.least_speed = std::min(report_.least_speed, job.speed);
      report_.makespan_seconds =
          std::max(report_.makespan_seconds, job.finished_seconds - first);
    }
    if (ran <= 0) return;
    report_.mean_speed = alone_seconds_ / ran;
    report_.least_at_once = least_sum_ / node_seconds_;
    report_.fairness_index =
        sum * sum / (static_cast<double>(report_.jobs.size()) * squares);
    report_.starved_part = starved / ran;
    report_.changes_per_job_hour = changes / (ran / 3600);
    report_.prediction_error = median(errors);
  }

  const SharingSimulation& simulation_;
  const std::function<void(std::size_t jobs)>& ended_;
  std::mt19937_64 random_;
  std::vector<Node> nodes_;
  std::deque<std::size_t> coming_;
  std::vector<Running> running_;  ///< By job; without nodes: does not run.
  std::vector<std::string> names_;
  std::vector<double> alone_;
  std::vector<double> slowest_;  ///< The slowest of this tick, by job.
  std::vector<double> even_;
  std::size_t count_ = 0;  ///< The number of jobs that run.
  std::size_t ended_jobs_ = 0;
  double alone_seconds_ = 0;  ///< The time that the work done would take alone.
  double least_sum_ = 0;
  double node_seconds_ = 0;  ///< The time of nodes that have jobs.
  SharingReport report_;
};

}  // namespace

std::string_view to_string(SharingPolicy policy) {
  switch (policy) {
    case SharingPolicy::kEven:
      return "even";
    case SharingPolicy::kUnshared:
      return "unshared";
    case SharingPolicy::kWorkersOnly:
      return "workers";
    case SharingPolicy::kSplit:
      return "split";
    case SharingPolicy::kThroughput:
      return "throughput";
    case SharingPolicy::kFairness:
      break;
  }
  return "fairness";
}

JobReport report_of(const JobSpeed& truth, const Grant& grant, double rate,
                    double seconds) {
  const double samples = rate * seconds;
  const double missed = missed_part(truth, grant.cache_bytes);
  const double asked = samples * truth.reads_per_sample;
  JobReport report{.seconds = seconds, .samples = samples};
  report.training_seconds = samples / truth.compute_ceiling;
  report.wait_seconds = seconds - report.training_seconds;
  report.reads = asked * missed;
  report.read_bytes = samples * truth.read_bytes_per_sample * missed;
  report.read_seconds = report.reads * truth.latency_seconds;
  report.tasks = samples;
  report.busy_seconds = samples * seconds_per_sample(truth, grant.cache_bytes);
  report.saved_seconds = truth.saved_seconds;
  if (truth.saved_seconds > 0) report.decoded_hits = samples * (1 - missed);
  report.cache_hits = asked * (1 - missed);
  report.cache_misses = asked * missed;
  report.threads = std::isfinite(grant.threads) ? grant.threads : 1;
  report.in_flight = std::isfinite(grant.in_flight) ? grant.in_flight : 1e6;
  return report;
}

Result<SharingReport> simulate_sharing(
    const SharingSimulation& simulation, const std::stop_token& stop,
    const std::function<void(std::size_t jobs)>& ended) {
  for (const SimulatedJob& job : simulation.jobs) {
    if (job.nodes > simulation.nodes || job.nodes == 0) {
      return invalid(
          "job {} wants {} nodes of {}: give it between 1 and as many as there "
          "are",
          job.name, job.nodes, simulation.nodes);
    }
    const double alone = rate_alone(simulation.node, truth_of(job));
    if (!std::isfinite(alone) || alone <= 0) {
      return invalid(
          "nothing bounds job {}: say what its training, decoding or reading "
          "takes",
          job.name);
    }
  }
  return Simulator(simulation, ended).run(stop);
}

}  // namespace leat
