#include "leat/agent/job_book.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <utility>

namespace leat {
namespace {

/// Less time than this tells little.
constexpr double kLeastSeconds = 0.5;
/// Ranks that have left a job and might come back: the agent may have hung up.
constexpr std::size_t kMostLeft = 64;
/// A member that reports nothing for longer than this has stopped.
constexpr double kSilentSeconds = 3;
/// The points of a tick are at least that much later than those before: JSON
/// has thousandths.
constexpr double kLeastStep = 0.001;
/// A pace that differs by less is not told anew.
constexpr double kPaceNoise = 0.02;

bool is_near(double a, double b) {
  return a == b || std::abs(a - b) <= kPaceNoise * std::min(a, b);
}

bool is_near(const std::optional<Pace>& a, const std::optional<Pace>& b) {
  if (!a || !b) return a.has_value() == b.has_value();
  return is_near(a->offered, b->offered) && is_near(a->reached, b->reached) &&
         is_near(a->ceiling, b->ceiling);
}

JobTotals totals_of_rank(const WireRates& rates) {
  JobTotals totals = rates.totals;
  totals.try_emplace(&counters::kGets, rates.reads);
  return totals;
}

double hits_of(const JobTotals& totals) {
  return total_of(totals, counters::kRamHits) +
         total_of(totals, counters::kDiskHits) +
         total_of(totals, counters::kPeerHits);
}

/// Waits by cause between two states of the counters, as parts of the time.
std::map<std::string, double> stalls_between(const WireRates& from,
                                             const WireRates& to) {
  std::map<std::string, double> parts;
  const double seconds = to.elapsed_seconds - from.elapsed_seconds;
  if (seconds <= 0) return parts;
  for (const auto& [cause, time] : to.stalls) {
    const auto before = from.stalls.find(cause);
    const double waited =
        time - (before == from.stalls.end() ? 0 : before->second);
    parts[cause] = std::clamp(waited / seconds, 0.0, 1.0);
  }
  return parts;
}

/// The work done between two states of the counters; nothing if the counters
/// went back, as they do when somebody lies.
std::optional<JobReport> between(const WireRates& from, const WireRates& to) {
  JobReport report;
  constexpr std::array<std::pair<double WireRates::*, double JobReport::*>, 8>
      kFields = {{{&WireRates::elapsed_seconds, &JobReport::seconds},
                  {&WireRates::samples, &JobReport::samples},
                  {&WireRates::epochs, &JobReport::epochs},
                  {&WireRates::training_seconds, &JobReport::training_seconds},
                  {&WireRates::reads, &JobReport::reads},
                  {&WireRates::read_seconds, &JobReport::read_seconds},
                  {&WireRates::tasks, &JobReport::tasks},
                  {&WireRates::busy_seconds, &JobReport::busy_seconds}}};
  constexpr std::array<std::pair<const JobCounter*, double JobReport::*>, 3>
      kTotals = {{{&counters::kWaitSeconds, &JobReport::wait_seconds},
                  {&counters::kReadBytes, &JobReport::read_bytes},
                  {&counters::kCacheMisses, &JobReport::cache_misses}}};
  for (const auto& [counter, field] : kFields) {
    report.*field = to.*counter - from.*counter;
    if (report.*field < 0) return std::nullopt;
  }
  for (const auto& [counter, field] : kTotals) {
    report.*field =
        total_of(to.totals, *counter) - total_of(from.totals, *counter);
    if (report.*field < 0) return std::nullopt;
  }
  report.cache_hits = hits_of(to.totals) - hits_of(from.totals);
  if (report.cache_hits < 0) return std::nullopt;
  report.decoded_hits =
      to.decoded_hits.value_or(0) - from.decoded_hits.value_or(0);
  if (report.decoded_hits < 0) return std::nullopt;
  report.kept_bytes = to.kept_bytes.value_or(0);
  report.saved_seconds = to.saved_seconds.value_or(0);
  report.threads = to.threads;
  report.in_flight = to.in_flight;
  return report;
}

/// The report of a member that has stopped, over the `seconds` since its job
/// was learned from.
JobReport no_work(const std::optional<WireRates>& latest, double seconds) {
  JobReport report{.seconds = seconds};
  if (latest) {
    report.threads = latest->threads;
    report.in_flight = latest->in_flight;
  }
  return report;
}

}  // namespace

void JobBook::join(MemberId member, std::uint32_t user, std::int32_t pid,
                   const WireRegistration& registration, double unix_seconds) {
  std::string& id = ids_[{user, registration.job}];
  if (id.empty()) id = fmt::format("{}", ++jobs_ever_);
  Job& job = jobs_[id];
  if (job.members.empty()) {
    job.registration = registration;
    job.user = user;
    job.since = unix_seconds;
  }
  job.members.push_back(member);
  members_[member] = {
      .job = id, .user = user, .pid = pid, .registration = registration};
  admit(id, job);
}

void JobBook::admit(const std::string& id, Job& job) {
  // A job's limits grow with each rank, so the ask is made anew.
  JobAsk ask{.most_threads = 0,
             .most_in_flight = 0,
             .cache = {.ram_bytes = 0, .disk_bytes = 0}};
  for (const MemberId member : job.members) {
    const WireRegistration& said = members_[member].registration;
    ask.most_threads += static_cast<double>(said.threads);
    ask.most_in_flight += static_cast<double>(said.in_flight);
    ask.cache.ram_bytes += static_cast<double>(said.ram_bytes);
    ask.cache.disk_bytes += static_cast<double>(said.disk_bytes);
    if (!said.shared_cache.empty()) {
      ask.shared_cache = fmt::format("{}\n{}", job.user, said.shared_cache);
    }
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
      const bool is_new =
          std::ranges::find(ask.buckets, i) == ask.buckets.end();
      if (is_new &&
          std::ranges::find(said.buckets, buckets_[i]) != said.buckets.end()) {
        ask.buckets.push_back(i);
      }
    }
    ask.dataset_samples = static_cast<double>(said.dataset_samples);
    ask.samples_to_do += ask.dataset_samples *
                         static_cast<double>(said.epochs) /
                         static_cast<double>(said.world_size);
  }
  sharing_.leave(id);
  sharing_.arrive(id, ask);
}

void JobBook::leave(MemberId member) {
  const auto found = members_.find(member);
  if (found == members_.end()) return;
  const std::string id = found->second.job;
  const auto key =
      std::pair(found->second.user, found->second.registration.job);
  Job& job = jobs_[id];
  keep_totals(found->second, job);
  members_.erase(found);
  std::erase(job.members, member);
  if (!job.members.empty()) return admit(id, job);
  sharing_.leave(id);
  jobs_.erase(id);
  ids_.erase(key);
}

/// A job's counters do not fall when one of its ranks goes.
void JobBook::keep_totals(const Member& member, Job& job) {
  if (!member.latest) return;
  if (job.left.size() >= kMostLeft) {
    for (const auto& [who, totals] : job.left) add_totals(totals, job.had);
    job.left.clear();
  }
  JobTotals totals = totals_of_rank(*member.latest);
  std::erase_if(totals, [](const auto& one) { return one.first->is_gauge(); });
  job.left[member.who()] = std::move(totals);
}

void JobBook::report(MemberId member, const WireRates& rates) {
  const auto found = members_.find(member);
  if (found == members_.end()) return;
  found->second.latest = rates;
  found->second.has_spoken = true;
}

void JobBook::notice_silence(double now) {
  for (auto& [id, member] : members_) {
    const bool is_new = !member.heard_at;
    if (std::exchange(member.has_spoken, false) || is_new) {
      member.heard_at = now;
    }
    member.is_silent = now - *member.heard_at > kSilentSeconds;
    // Its next report covers the silence, too, and is only a new beginning.
    if (member.is_silent) member.learned.reset();
  }
}

bool JobBook::learn(const std::string& id, Job& job, double now) {
  std::vector<JobReport> ranks;
  std::map<std::string, double> stalls;
  for (const MemberId member : job.members) {
    const Member& one = members_[member];
    if (one.is_silent) {
      const double seconds = now - job.learned_at;
      if (seconds < kLeastSeconds) return false;
      ranks.push_back(no_work(one.latest, seconds));
      continue;
    }
    if (!one.latest || !one.learned) continue;
    if (one.latest->elapsed_seconds <
        one.learned->elapsed_seconds + kLeastSeconds) {
      return false;  // All together, or the sum is of fewer.
    }
    for (const auto& [cause, part] :
         stalls_between(*one.learned, *one.latest)) {
      stalls[cause] += part / static_cast<double>(job.members.size());
    }
    if (const auto report = between(*one.learned, *one.latest)) {
      ranks.push_back(*report);
    }
  }
  job.learned_at = now;
  for (const MemberId member : job.members) {
    Member& one = members_[member];
    if (!one.is_silent) one.learned = one.latest;
  }
  if (ranks.size() != job.members.size()) return false;
  job.last = together(ranks);
  job.stalls = std::move(stalls);
  sharing_.report(id, job.last);
  return true;
}

/// Its ranks hear the same, one a little later than the other.
void JobBook::hear_of_elsewhere(const std::string& id, const Job& job) {
  std::optional<Pace> pace;
  for (const MemberId member : job.members) {
    const std::optional<WireRates>& said = members_[member].latest;
    if (!said || !said->elsewhere) continue;
    pace = pace ? joined(*pace, *said->elsewhere) : *said->elsewhere;
  }
  if (!pace) return;
  const auto here = static_cast<double>(job.members.size());
  sharing_.set_elsewhere(id, scaled(*pace, here));
}

std::optional<Pace> JobBook::pace_of(const Job& job,
                                     const SharingJob& known) const {
  if (job.members.size() >= job.registration.world_size) return std::nullopt;
  const auto pace = known.pace();
  if (!pace) return std::nullopt;
  return scaled(*pace, 1 / static_cast<double>(job.members.size()));
}

void JobBook::note(const std::string& id, const Job& job, double unix_seconds) {
  const SharingJob& known = sharing_.jobs().find(id)->second;
  if (!known.has_found) return;
  history_.push_back(
      {.time_seconds = unix_seconds,
       .job = id,
       .threads = job.last.threads,
       .in_flight = job.last.in_flight,
       .found_rate = known.fit.found_rate(),
       .predicted_rate = known.foretold_rate,
       .wait_fraction = std::min(1.0, job.last.wait_seconds / job.last.seconds),
       .bytes_per_second = job.held.bytes_per_second,
       .ram_bytes = job.held.ram_bytes,
       .disk_bytes = job.held.disk_bytes});
  const double since = unix_seconds - kKeptSeconds;
  while (
      history_.size() > kMostPoints ||
      (history_.size() > kFewPoints && history_.front().time_seconds < since)) {
    history_.pop_front();
  }
}

void JobBook::tick(double now, double unix_seconds) {
  std::vector<std::string> learned;
  notice_silence(now);
  for (auto& [id, job] : jobs_) {
    hear_of_elsewhere(id, job);
    // The share that held meanwhile, before it is decided anew.
    job.held = whole_share_of(sharing_.jobs().find(id)->second);
    if (learn(id, job, now)) learned.push_back(id);
  }
  sharing_.decide(now);
  // A reader asks for later points than it has, and the clock may go back.
  const double date =
      history_.empty()
          ? unix_seconds
          : std::max(unix_seconds, history_.back().time_seconds + kLeastStep);
  for (const std::string& id : learned) note(id, jobs_[id], date);
  const auto& decided = sharing_.decisions();
  const std::uint64_t oldest = sharing_.decided() - decided.size() + 1;
  // The gains of earlier decisions may have been found since.
  for (NumberedDecision& old : decisions_) {
    if (old.number >= oldest) old.decision = decided[old.number - oldest];
  }
  for (std::uint64_t n = std::max(decisions_dated_ + 1, oldest);
       n <= sharing_.decided(); ++n) {
    const Decision& taken = decided[n - oldest];
    const auto job = jobs_.find(taken.job);
    decisions_.push_back(
        {n, unix_seconds, taken,
         job == jobs_.end() ? "" : job->second.registration.name});
    if (decisions_.size() > NodeSharing::kKeptDecisions) {
      decisions_.pop_front();
    }
  }
  decisions_dated_ = sharing_.decided();
}

/// The share of a job's tiers that are dealt out here: bytes of all its ranks.
Share JobBook::cache_share_of(const SharingJob& known) const {
  const NodeResources& node = sharing_.node();
  const CacheRoom& asked = known.ask.cache;
  Share share;
  if (node.cache_bytes > node.disk_bytes && asked.ram_bytes > 0) {
    share.ram_bytes = static_cast<std::uint64_t>(known.grant.ram_bytes());
  }
  if (node.disk_bytes > 0 && asked.disk_bytes > 0) {
    share.disk_bytes = static_cast<std::uint64_t>(known.grant.disk_bytes);
  }
  return share;
}

/// The share of all ranks of a job here.
Share JobBook::whole_share_of(const SharingJob& known) const {
  const Grant& grant = known.grant;
  const auto count = [](double value) {
    return static_cast<std::size_t>(value);
  };
  Share share = cache_share_of(known);
  if (std::isfinite(grant.threads)) share.threads = count(grant.threads);
  if (std::isfinite(grant.in_flight)) share.in_flight = count(grant.in_flight);
  if (std::isfinite(grant.bytes_per_second)) {
    share.bytes_per_second = count(grant.bytes_per_second);
  }
  return share;
}

Share JobBook::share_of(const Job& job, std::size_t place,
                        const SharingJob& known) const {
  const Grant& grant = known.grant;
  const auto count = static_cast<double>(job.members.size());
  const auto part = [&](double of) {
    const double each = std::floor(of / count);
    const double left = of - each * count;
    return static_cast<std::size_t>(
        std::max(1.0, each + (static_cast<double>(place) < left ? 1 : 0)));
  };
  Share share = cache_share_of(known);
  for (auto* bytes : {&share.ram_bytes, &share.disk_bytes}) {
    if (*bytes) **bytes /= job.members.size();
  }
  if (std::isfinite(grant.threads)) share.threads = part(grant.threads);
  if (std::isfinite(grant.in_flight)) share.in_flight = part(grant.in_flight);
  if (std::isfinite(grant.bytes_per_second)) {
    share.bytes_per_second = static_cast<std::uint64_t>(
        std::max(1.0, grant.bytes_per_second / count));
  }
  return share;
}

std::map<MemberId, JobBook::Told> JobBook::take_shares() {
  std::map<MemberId, Told> shares;
  for (const auto& [id, job] : jobs_) {
    const SharingJob& known = sharing_.jobs().find(id)->second;
    const std::optional<Pace> pace = pace_of(job, known);
    for (std::size_t i = 0; i < job.members.size(); ++i) {
      Member& member = members_[job.members[i]];
      const Told told{.share = share_of(job, i, known), .pace = pace};
      if (member.told && member.told->share == told.share &&
          is_near(member.told->pace, pace)) {
        continue;
      }
      member.told = shares[job.members[i]] = told;
    }
  }
  return shares;
}

std::optional<MemberId> JobBook::first_member(const std::string& id) const {
  const auto found = jobs_.find(id);
  if (found == jobs_.end() || found->second.members.empty()) {
    return std::nullopt;
  }
  return found->second.members.front();
}

std::string JobBook::job_of(MemberId member) const {
  const auto found = members_.find(member);
  return found == members_.end() ? "" : found->second.job;
}

std::vector<std::int32_t> JobBook::pids() const {
  std::vector<std::int32_t> pids;
  for (const auto& [id, member] : members_) pids.push_back(member.pid);
  std::sort(pids.begin(), pids.end());
  pids.erase(std::unique(pids.begin(), pids.end()), pids.end());
  return pids;
}

/// Those that have a limit: the node's first.
std::vector<LinkView> JobBook::links() const {
  const std::vector<double> rates = links_of(sharing_.node());
  std::vector<LinkView> links;
  for (std::size_t link = 0; link < rates.size(); ++link) {
    if (!std::isfinite(rates[link])) continue;
    LinkView view{.bytes_per_second = rates[link]};
    if (link > 0) view.bucket = buckets_[link - 1];
    for (const auto& [id, job] : sharing_.jobs()) {
      const auto& its = job.ask.buckets;
      const bool reads =
          link == 0 || std::ranges::find(its, link - 1) != its.end();
      if (reads) view.read_bytes_per_second += job.reading;
    }
    links.push_back(std::move(view));
  }
  return links;
}

JobView JobBook::view_of(const std::string& id, const Job& job) const {
  const SharingJob& known = sharing_.jobs().find(id)->second;
  JobView view{.id = id,
               .name = job.registration.name,
               .dataset = job.registration.dataset,
               .user = job.user,
               .local_ranks = static_cast<std::uint32_t>(job.members.size()),
               .world_size = job.registration.world_size,
               .since_seconds = job.since,
               .found_rate = known.fit.found_rate(),
               .predicted_rate = known.foretold_rate,
               .confidence = known.fit.confidence()};
  view.share = whole_share_of(known);
  std::set<RankOfProcess> present;
  for (const MemberId member : job.members) {
    const Member& one = members_.find(member)->second;
    view.pids.push_back(one.pid);
    if (!one.latest) continue;
    add_totals(totals_of_rank(*one.latest), view.totals);
    present.insert(one.who());
  }
  add_totals(job.had, view.totals);
  for (const auto& [who, totals] : job.left) {
    // One that came back counts on from its own totals.
    if (!present.contains(who)) add_totals(totals, view.totals);
  }
  if (job.last.seconds > 0) {
    view.wait_fraction =
        std::min(1.0, job.last.wait_seconds / job.last.seconds);
    view.stalls = job.stalls;
  }
  if (known.fit.is_known()) {
    const JobSpeed speed = known.speed();
    if (std::isfinite(speed.compute_ceiling)) {
      view.compute_ceiling = speed.compute_ceiling;
    }
    view.bottleneck = to_string(known.predict_with(known.grant).bound);
  }
  return view;
}

NodeView JobBook::view() const {
  NodeView view{.objective =
                    std::string(to_string(options_.allocation.objective))};
  if (std::isfinite(sharing_.node().in_flight)) {
    view.in_flight = static_cast<std::uint64_t>(sharing_.node().in_flight);
  }
  view.links = links();
  for (const auto& [id, job] : jobs_) view.jobs.push_back(view_of(id, job));
  view.decisions.assign(decisions_.begin(), decisions_.end());
  view.history.assign(history_.begin(), history_.end());
  return view;
}

}  // namespace leat
