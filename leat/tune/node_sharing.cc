#include "leat/tune/node_sharing.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace leat {
namespace {

constexpr double kLongestReport = 2;
constexpr double kLongestStep = 4;  // The longest time, in seconds, that is
                                    // counted together.
constexpr double kSoon = 1;  // Seconds: that much more or less is all the same.
constexpr double kLeastWorth = 0.6;  // The worth of the job that has longest to
                                     // go.
// The weight of a job's earlier reads, with each report, if they were more.
constexpr double kKeptReads = 0.7;

}  // namespace

void NodeSharing::arrive(const std::string& job, const JobAsk& ask) {
  jobs_.emplace(job,
                SharingJob{.ask = ask, .fit = JobFit(ask.dataset_samples)});
  SharingJob& at = jobs_.find(job)->second;
  at.is_cache_dealt = most_cache_of(at) > 0;
  count_sharers();
  reasons_.event = "a job came";
  reasons_.has_arrival = true;
  log_.has_said_nothing_to_gain = false;
}

void NodeSharing::leave(const std::string& job) {
  if (jobs_.erase(job) == 0) return;
  count_sharers();
  reasons_.event = "a job left";
  reasons_.has_room = true;
  log_.has_said_nothing_to_gain = false;
}

void NodeSharing::count_sharers() {
  std::map<std::string, std::size_t> sharers;
  for (const auto& [id, job] : jobs_) ++sharers[job.ask.shared_cache];
  for (auto& [id, job] : jobs_) {
    const std::string& cache = job.ask.shared_cache;
    job.sharers = cache.empty() ? 1 : sharers[cache];
  }
}

double NodeSharing::most_cache_of(const SharingJob& job) const {
  const CacheRoom room = job.room();
  const auto sharers = static_cast<double>(job.sharers);
  const double ram = node_.cache_bytes - node_.disk_bytes;
  return std::min(room.ram_bytes, ram / sharers) +
         std::min(room.disk_bytes, node_.disk_bytes / sharers);
}

void NodeSharing::report(const std::string& job, const JobReport& report) {
  const auto found = jobs_.find(job);
  if (found == jobs_.end()) return;
  SharingJob& at = found->second;
  if (at.unlearned) learn(at);
  at.unlearned = report;
  if (is_credible(report)) {
    at.samples_done += report.samples;
    const double read = at.reading = report.read_bytes / report.seconds;
    at.read_bytes_per_second =
        std::max(read, read + kKeptReads * (at.read_bytes_per_second - read));
  }
}

void NodeSharing::learn(SharingJob& job) {
  const JobReport report = *std::exchange(job.unlearned, std::nullopt);
  watch_epochs(job, report);
  watch_idleness(job, report);
  // A step may take longer than a second: half of the reports would then say
  // that nothing is done, and the others twice the real rate.
  const bool is_sound = is_credible(report);
  JobReport whole = report;
  if (is_sound && job.carried) whole = in_turn(*job.carried, report);
  if (is_sound) job.carried_expected += job.expected_rate * report.seconds;
  if (is_sound && made_in(whole) <= 0 && whole.seconds < kLongestStep) {
    job.carried = whole;
    return;
  }
  job.foretold_rate = is_sound ? job.carried_expected / whole.seconds : 0;
  job.carried_expected = 0;
  job.carried.reset();
  job.has_found = true;
  job.fit.observe(whole, job.grant,
                  {.elsewhere = job.elsewhere, .link_load = link_load(job)});
  log_.fill_in_gain(job);
}

double NodeSharing::link_load(const SharingJob& job) const {
  double read = 0;
  for (const auto& [id, other] : jobs_) read += other.reading;
  double most = read / node_.bytes_per_second;
  for (const std::size_t bucket : job.ask.buckets) {
    read = 0;
    for (const auto& [id, other] : jobs_) {
      const auto& its = other.ask.buckets;
      if (std::ranges::find(its, bucket) != its.end()) read += other.reading;
    }
    most = std::max(most, read / node_.bucket_bytes_per_second[bucket]);
  }
  return most;
}

/// From here on, its caches' answers and its remaining time may belong to
/// another epoch. Epochs that are shorter than the rest between changes are no
/// reason.
void NodeSharing::watch_epochs(SharingJob& job, const JobReport& report) {
  if (!is_credible(report)) return;
  job.epoch_seconds += std::min(report.seconds, kLongestReport);
  if (report.epochs <= 0) return;
  if (std::exchange(job.epoch_seconds, 0) < options_.least_seconds) return;
  reasons_.has_epoch_ended = true;
  if (reasons_.event.empty()) reasons_.event = "an epoch has ended";
}

void NodeSharing::watch_idleness(SharingJob& job, const JobReport& report) {
  const bool was_idle = job.is_idle();
  const bool asks = report.samples > 0 || report.reads > 0 ||
                    report.tasks > 0 || report.wait_seconds > 0;
  // However long a report says it is of, one alone makes nobody idle.
  if (asks) {
    job.idle_seconds = 0;
  } else if (report.seconds > 0) {
    job.idle_seconds += std::min(report.seconds, kLongestReport);
  }
  if (was_idle == job.is_idle()) return;
  reasons_.event = was_idle ? "a job reads again" : "a job asks for nothing";
  (was_idle ? reasons_.has_arrival : reasons_.has_room) = true;
  log_.has_said_nothing_to_gain = false;
}

void NodeSharing::set_elsewhere(const std::string& job, const Pace& pace) {
  const auto found = jobs_.find(job);
  if (found != jobs_.end()) found->second.elsewhere = pace;
}

void NodeSharing::set_resources(const NodeResources& node) {
  if (std::floor(node.threads) > std::floor(node_.threads)) {
    reasons_.event = "there are more cores";
    reasons_.has_room = true;
  }
  node_ = node;
}

std::vector<SharingEntry*> NodeSharing::working() {
  std::vector<SharingEntry*> working;
  for (SharingEntry& entry : jobs_) {
    if (!entry.second.is_idle()) working.push_back(&entry);
  }
  return working;
}

NodeResources NodeSharing::shared() const {
  NodeResources shared = node_;
  for (const auto& [id, job] : jobs_) {
    if (!job.is_idle()) continue;
    shared.cache_bytes -= job.grant.cache_bytes;
    shared.disk_bytes -= job.grant.disk_bytes;
  }
  shared.disk_bytes = std::max(0.0, shared.disk_bytes);
  shared.cache_bytes = std::max(shared.disk_bytes, shared.cache_bytes);
  return shared;
}

std::vector<Claim> NodeSharing::claims(
    const std::vector<SharingEntry*>& jobs) const {
  std::vector<Claim> claims;
  for (const SharingEntry* entry : jobs) {
    const SharingJob& job = entry->second;
    Claim claim{.outside_ceiling = job.outside(),
                .most_threads = std::max(1.0, job.ask.most_threads),
                .most_in_flight = std::max(1.0, job.ask.most_in_flight),
                .most_cache_bytes = most_cache_of(job),
                .buckets = job.ask.buckets};
    if (job.fit.is_known()) {
      claim.speed = job.speed();
      claim.speed.latency_seconds = job.fit.latency_with_room();
    }
    claim.used_bytes_per_second = job.read_bytes_per_second;
    claims.push_back(claim);
  }
  if (options_.allocation.objective == Objective::kThroughput) {
    prefer_short(jobs, claims);
  }
  return claims;
}

/// Gives the more worth to a job the sooner it could end: its share is then
/// free for jobs that have longer to go.
void NodeSharing::prefer_short(const std::vector<SharingEntry*>& jobs,
                               std::vector<Claim>& claims) const {
  double least = kUnbounded;
  double longest = 0;
  std::vector<double> left;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const SharingJob& job = jobs[i]->second;
    const double samples = job.ask.samples_to_do - job.samples_done;
    const double rate = rate_alone(node_, claims[i]);
    left.push_back(samples > 0 && std::isfinite(rate) && rate > 0
                       ? kSoon + samples / rate
                       : 0);
    if (left[i] <= 0) continue;
    least = std::min(least, left[i]);
    longest = std::max(longest, left[i]);
  }
  if (longest <= 0) return;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const double seconds = left[i] > 0 ? left[i] : longest;
    claims[i].worth = std::max(kLeastWorth, least / seconds);
  }
}

void NodeSharing::make_offers(const std::vector<SharingEntry*>& jobs,
                              const std::vector<Claim>& claims,
                              const std::vector<Grant>& best) {
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    SharingJob& job = jobs[i]->second;
    job.offered = 0;
    if (!job.fit.is_known()) continue;
    Grant most = best[i];
    if (std::isfinite(claims[i].outside_ceiling)) {
      std::vector<Claim> free = claims;
      free[i].outside_ceiling = kUnbounded;
      most = allocate(shared(), free, options_.allocation)[i];
    }
    job.offered = predict(claims[i].speed, job.within_ask(most)).rate;
  }
}

}  // namespace leat
