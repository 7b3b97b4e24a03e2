// The times at which shares change, and the reports of it.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "leat/tune/bandwidth_lending.h"
#include "leat/tune/node_sharing.h"

namespace leat {
namespace {

constexpr double kDrift = 0.1;           // A relative change of a figure.
constexpr double kLeastRoomGain = 0.01;  // When somebody has left.
constexpr std::uint32_t kGainReports = 3;
// At this share of the link and beyond, some wait for others.
constexpr double kFullLink = 0.97;
// After a change, for jobs that are just known.
constexpr double kNewSeconds = 3;

bool differs(double a, double b) {
  if (a == b) return false;
  if (!std::isfinite(a) || !std::isfinite(b)) return true;
  return std::abs(a - b) > kDrift * std::max(std::abs(a), std::abs(b));
}

bool has_drifted_from(const JobSpeed& now, const JobSpeed& then) {
  return differs(now.compute_ceiling, then.compute_ceiling) ||
         differs(now.rate_per_thread, then.rate_per_thread) ||
         differs(now.dataset_bytes, then.dataset_bytes) ||
         differs(now.saved_seconds, then.saved_seconds) ||
         differs(now.reads_per_sample * now.latency_seconds,
                 then.reads_per_sample * then.latency_seconds) ||
         differs(now.read_bytes_per_sample, then.read_bytes_per_sample);
}

struct Shown {
  Setting setting;
  double (*value)(const Grant&);
};
constexpr std::array kShown = {
    Shown{Setting::kThreads, [](const Grant& g) { return g.threads; }},
    Shown{Setting::kInFlight, [](const Grant& g) { return g.in_flight; }},
    Shown{Setting::kBytesPerSecond,
          [](const Grant& g) { return g.bytes_per_second; }},
    Shown{Setting::kRamBytes, [](const Grant& g) { return g.ram_bytes(); }},
    Shown{Setting::kDiskBytes, [](const Grant& g) { return g.disk_bytes; }}};

bool has_drifted(const SharingJobs& jobs) {
  return std::any_of(jobs.begin(), jobs.end(), [](const auto& entry) {
    const SharingJob& job = entry.second;
    const bool is_known = job.fit.is_known();
    if (is_known != job.was_known) return true;
    return is_known && (has_drifted_from(job.speed(), job.decided_by) ||
                        differs(job.outside(), job.decided_outside));
  });
}

bool has_newly_known(const SharingJobs& jobs) {
  return std::any_of(jobs.begin(), jobs.end(), [](const auto& entry) {
    const SharingJob& job = entry.second;
    return (job.fit.is_known() && !job.was_known) ||
           std::isfinite(job.outside()) != std::isfinite(job.decided_outside);
  });
}

/// Such a job is due its even share, for any gain or loss.
bool has_lost_figures(const SharingJobs& jobs) {
  return std::any_of(jobs.begin(), jobs.end(), [](const auto& entry) {
    return entry.second.was_known && !entry.second.fit.is_known();
  });
}

/// Equal parts for those that have one cache.
void level_shared_caches(const std::vector<SharingEntry*>& jobs,
                         std::vector<Grant>& grants) {
  struct Cache {
    double bytes = 0;
    double fillers = 0;
  };
  std::map<std::string, Cache> caches;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    Cache& cache = caches[jobs[i]->second.ask.shared_cache];
    cache.bytes += grants[i].cache_bytes;
    cache.fillers += 1;
  }
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const std::string& name = jobs[i]->second.ask.shared_cache;
    if (name.empty()) continue;
    grants[i].cache_bytes = caches[name].bytes / caches[name].fillers;
  }
}

}  // namespace

void NodeSharing::Log::add(Decision decision) {
  latest.push_back(std::move(decision));
  ++count;
  if (latest.size() > kKeptDecisions) latest.pop_front();
}

void NodeSharing::Log::fill_in_gain(SharingJob& job) {
  if (job.decision == 0 || ++job.reports_since < kGainReports) return;
  const std::uint64_t oldest = count - latest.size() + 1;
  for (std::uint64_t n = std::max(job.decision, oldest);
       job.rate_before > 0 && n <= job.last_decision; ++n) {
    latest[n - oldest].found_gain = job.fit.found_rate() / job.rate_before - 1;
  }
  job.decision = 0;
}

void NodeSharing::note_what_was_decided_by() {
  for (auto& [id, job] : jobs_) {
    job.decided_by = job.speed();
    job.decided_outside = job.outside();
    job.was_known = job.fit.is_known();
  }
}

bool NodeSharing::is_overfull() const {
  double threads = 0;
  for (const auto& [id, job] : jobs_) {
    if (!job.is_idle()) threads += job.grant.threads;
  }
  return threads >
         std::max(std::floor(node_.threads), static_cast<double>(jobs_.size()));
}

bool NodeSharing::decide(double now) {
  for (auto& [id, job] : jobs_) {
    job.has_found = false;
    if (job.unlearned) learn(job);
  }
  const bool has_changed = decide_as_known(now);
  for (auto& [id, job] : jobs_) job.expected_rate = job.predicted_rate();
  return has_changed;
}

bool NodeSharing::decide_as_known(double now) {
  const std::vector<SharingEntry*> jobs = working();
  if (jobs.empty()) {
    reasons_.event.clear();
    reasons_.has_arrival = reasons_.has_room = reasons_.has_epoch_ended = false;
    return false;
  }
  const bool has_dealt = deal_anew(now, jobs);
  return has_dealt || lend(now, jobs);
}

bool NodeSharing::deal_anew(double now,
                            const std::vector<SharingEntry*>& jobs) {
  const double least_seconds =
      std::min(options_.least_seconds,
               has_newly_known(jobs_) ? kNewSeconds : options_.least_seconds);
  const bool may_change =
      reasons_.has_epoch_ended || now - changed_at_ >= least_seconds;
  if (!reasons_.has_arrival && !reasons_.has_room && !may_change) return false;
  const bool is_over = is_overfull();
  bool must_change = reasons_.has_arrival || is_over || has_lost_figures(jobs_);
  if (!must_change && !reasons_.has_room && !reasons_.has_epoch_ended &&
      !has_drifted(jobs_)) {
    return false;
  }
  reasons_.has_epoch_ended = false;

  const NodeResources node = shared();
  const std::vector<Claim> wanted = claims(jobs);
  std::vector<Grant> grants = allocate(node, wanted, options_.allocation);
  make_offers(jobs, wanted, grants);
  deal_out_cache(node, wanted, grants);
  level_shared_caches(jobs, grants);
  std::vector<Grant> present;
  std::vector<CacheRoom> rooms;
  for (const SharingEntry* entry : jobs) {
    present.push_back(entry->second.grant);
    present.back().bytes_per_second = entry->second.planned_bytes_per_second;
    rooms.push_back(entry->second.room());
  }
  place_cache(node, rooms, grants);
  const bool lifts_to_floor =
      !keeps_floor(node, wanted, present, options_.allocation) &&
      keeps_floor(node, wanted, grants, options_.allocation);
  must_change = must_change || lifts_to_floor;
  const Objective objective = options_.allocation.objective;
  const auto better = normalised_rates(node, wanted, grants);
  const double gain =
      relative_gain(objective, better, normalised_rates(node, wanted, present));
  const double least = reasons_.has_room ? kLeastRoomGain : options_.least_gain;
  if (!must_change && gain < least) {
    note_what_was_decided_by();
    if (gain < kLeastRoomGain && better.size() == jobs.size()) {
      tell_nothing_to_gain(now);
    }
    const bool has_grown =
        reasons_.has_room && give_free_cache(now, jobs, wanted);
    reasons_.has_room = false;
    reasons_.event.clear();
    return has_grown;
  }
  if (reasons_.event.empty()) {
    reasons_.event =
        is_over ? "other programs take cores" : "figures have changed";
  }
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    SharingJob& job = jobs[i]->second;
    job.planned_bytes_per_second =
        std::exchange(grants[i].bytes_per_second, job.grant.bytes_per_second);
  }
  set_limits(jobs, wanted, grants);
  note_what_was_decided_by();
  apply(now, jobs, grants);
  reasons_.has_arrival = reasons_.has_room = false;
  reasons_.event.clear();
  changed_at_ = now;
  return true;
}

/// Memory that nobody holds is of no use to anybody.
bool NodeSharing::give_free_cache(double now,
                                  const std::vector<SharingEntry*>& jobs,
                                  const std::vector<Claim>& claims) {
  std::vector<Grant> grants;
  std::vector<CacheRoom> rooms;
  for (const SharingEntry* entry : jobs) {
    grants.push_back(entry->second.grant);
    rooms.push_back(entry->second.room());
  }
  const std::vector<Grant> before = grants;
  deal_out_cache(shared(), claims, grants);
  level_shared_caches(jobs, grants);
  place_cache(shared(), rooms, grants);
  const bool has_grown = !std::ranges::equal(
      before, grants, {}, &Grant::cache_bytes, &Grant::cache_bytes);
  if (has_grown) apply(now, jobs, grants);
  return has_grown;
}

bool NodeSharing::is_bandwidth_shared() const {
  return std::ranges::any_of(links_of(node_),
                             [](double rate) { return std::isfinite(rate); });
}

void NodeSharing::set_limits(const std::vector<SharingEntry*>& jobs,
                             const std::vector<Claim>& claims,
                             std::vector<Grant>& grants) const {
  if (!is_bandwidth_shared()) return;
  std::vector<LinkReading> readings;
  readings.reserve(jobs.size());
  for (const SharingEntry* entry : jobs) {
    readings.push_back({.bytes_per_second = entry->second.read_bytes_per_second,
                        .is_full = link_load(entry->second) >= kFullLink});
  }
  const std::vector<double> limits =
      lend_bandwidth(shared(), claims, grants, readings, options_.allocation);
  for (std::size_t i = 0; i < grants.size(); ++i) {
    grants[i].bytes_per_second = limits[i];
  }
}

bool NodeSharing::lend(double now, const std::vector<SharingEntry*>& jobs) {
  if (!is_bandwidth_shared()) return false;
  std::vector<Grant> grants;
  grants.reserve(jobs.size());
  for (const SharingEntry* entry : jobs) grants.push_back(entry->second.grant);
  const std::vector<Grant> before = grants;
  set_limits(jobs, claims(jobs), grants);
  if (std::ranges::equal(before, grants, {}, &Grant::bytes_per_second,
                         &Grant::bytes_per_second)) {
    return false;
  }
  reasons_.event = "bandwidth goes to those who read";
  apply(now, jobs, grants);
  reasons_.event.clear();
  return true;
}

void NodeSharing::apply(double now, const std::vector<SharingEntry*>& jobs,
                        const std::vector<Grant>& grants) {
  std::size_t i = 0;
  for (SharingEntry* entry : jobs) {
    auto& [id, job] = *entry;
    job.grant = grants[i++];
    const Grant before = job.told;
    const bool is_new = !std::isfinite(before.threads);
    const auto with = [&job = job](const Grant& grant) {
      return job.fit.is_known() ? job.predict_with(grant) : Prediction{};
    };
    const Prediction was = with(before);
    const Prediction is = with(job.grant);
    bool has_changed = false;
    for (const Shown& shown : kShown) {
      const double old_value = shown.value(before);
      const double new_value = shown.value(job.grant);
      if (!std::isfinite(new_value)) continue;
      const bool differs_here = shown.setting == Setting::kThreads
                                    ? old_value != new_value
                                    : differs(old_value, new_value);
      if (!differs_here) continue;
      Decision decision{.at_seconds = now,
                        .job = id,
                        .setting = shown.setting,
                        .before = std::isfinite(old_value) ? old_value : 0,
                        .after = new_value};
      decision.reason =
          job.fit.is_known()
              ? fmt::format("{}; {} bounds this job", reasons_.event,
                            to_string(is.bound))
              : fmt::format("{}; an even share until more is known",
                            reasons_.event);
      if (!is_new && std::isfinite(is.rate) && was.rate > 0) {
        decision.expected_gain = is.rate / was.rate - 1;
      }
      log_.add(std::move(decision));
      if (!std::exchange(has_changed, true) && !is_new) {
        job.decision = log_.count;
        job.rate_before = job.fit.found_rate();
        job.reports_since = 0;
      }
      job.last_decision = log_.count;
    }
    if (!has_changed) continue;
    job.told = job.grant;
    job.fit.share_changed();
    if (!is_new) ++job.changes;
  }
}

void NodeSharing::tell_nothing_to_gain(double now) {
  if (std::exchange(log_.has_said_nothing_to_gain, true)) return;
  double threads = 0;
  bool all_train = true;
  for (const auto& [id, job] : jobs_) {
    threads += job.grant.threads;
    all_train =
        all_train && job.predict_with(job.grant).bound == Bound::kTraining;
  }
  log_.add({.at_seconds = now,
            .job = {},
            .setting = Setting::kThreads,
            .before = threads,
            .after = threads,
            .reason = all_train
                          ? "nothing to gain: every job waits for its training"
                          : "nothing to gain: no other shares are faster",
            .expected_gain = {},
            .found_gain = {}});
}

}  // namespace leat
