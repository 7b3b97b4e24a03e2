#include "leat/tune/bandwidth_lending.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "leat/tune/rate_problem.h"

namespace leat {
namespace {

// A job that reads this share of its limit is held back by it.
constexpr double kHeld = 0.95;
// A limit is this many times what the job needs.
constexpr double kHeadroom = 1.25;
// A job is taken to want this many times what it was seen to read; kBusyMore if
// other jobs may have held it back; and kRoom of the whole link beside that.
constexpr double kMore = 1.05;
constexpr double kBusyMore = 1.25;
constexpr double kRoom = 0.02;
// If jobs want more than this share of a link, some run short.
constexpr double kFull = 0.95;
// Limits move only for a gain of at least this.
constexpr double kLeastGain = 0.005;
constexpr double kNoise = 0.01;

class Lending {
 public:
  Lending(const NodeResources& node, std::span<const Claim> claims,
          std::span<const Grant> grants, std::span<const LinkReading> readings,
          const AllocationOptions& options)
      : node_(node),
        links_(links_of(node)),
        options_(options),
        claims_(claims.begin(), claims.end()),
        grants_(grants.begin(), grants.end()),
        readers_(links_.size()) {
    for (std::size_t i = 0; i < claims_.size(); ++i) {
      Claim& claim = claims_[i];
      const LinkReading& read = readings[i];
      const double reads =
          (read.is_full ? kBusyMore : kMore) * read.bytes_per_second;
      needs_.push_back(needed_by(i));
      bytes_.push_back(bytes_of(i));
      const bool is_held =
          read.bytes_per_second >= kHeld * grants_[i].bytes_per_second;
      if (bytes_[i] > 0 && !is_held) {
        claim.wanted =
            (reads + kRoom * narrowest_link(node_, claim)) / bytes_[i];
      }
      // Otherwise the rates of jobs that are held back would be lent, on paper.
      claim.wanted = std::min(claim.wanted, rate_of_requests(i));
      claim.used_bytes_per_second = reads;
      for_each_link(claim,
                    [&](std::size_t link) { readers_[link].push_back(i); });
    }
  }

  std::vector<double> limits() {
    const Amounts best = best_rates(links_);
    // As if each had links of its own.
    Amounts wide = links_;
    for (double& link : wide) link *= times();
    const Amounts most = best_rates(wide);
    std::vector<bool> has_room;
    for (std::size_t link = 0; link < links_.size(); ++link) {
      has_room.push_back(is_roomy(link));
    }
    std::vector<double> limits;
    std::vector<bool> all_have_room;  // For each claim, over its links.
    for (std::size_t i = 0; i < claims_.size(); ++i) {
      const bool runs_short = best[i] < most[i] * (1 - 1e-6);
      double limit = kUnbounded;
      all_have_room.push_back(true);
      for_each_link(claims_[i], [&](std::size_t link) {
        limit = std::min(limit, links_[link]);
        if (has_room[link]) return;
        all_have_room[i] = false;
        if (!runs_short) limit = std::min(limit, with_headroom(i, link, best));
      });
      if (runs_short && !all_have_room[i]) {
        limit = std::max(1.0, best[i] * bytes_[i]);
      }
      limits.push_back(limit);
    }
    return is_worth_it(limits, all_have_room) ? limits : present();
  }

 private:
  double bytes_of(std::size_t i) const {
    const JobSpeed& speed = claims_[i].speed;
    return speed.read_bytes_per_sample *
           missed_part(speed, grants_[i].cache_bytes);
  }

  /// That those it has can bring.
  double rate_of_requests(std::size_t i) const {
    const JobSpeed& speed = claims_[i].speed;
    const double waits = speed.latency_seconds * speed.reads_per_sample *
                         missed_part(speed, grants_[i].cache_bytes);
    return waits > 0 ? grants_[i].in_flight / waits : kUnbounded;
  }

  /// Bytes a second, if nobody else read; nullopt: not known.
  std::optional<double> needed_by(std::size_t i) const {
    const double rate = rate_alone(node_, claims_[i]);
    if (!std::isfinite(rate)) return std::nullopt;
    Grant free = grants_[i];
    free.bytes_per_second = kUnbounded;
    free.threads = std::min(free.threads, claims_[i].most_threads);
    free.in_flight = std::min(free.in_flight, claims_[i].most_in_flight);
    return bytes_of(i) * std::min({rate, predict(claims_[i].speed, free).rate,
                                   claims_[i].outside_ceiling});
  }

  /// More than all claims together can want, if each wants one link.
  double times() const { return static_cast<double>(claims_.size() + 1); }

  /// Counts the demand of all claims as far as the other links let it through.
  bool is_roomy(std::size_t link) const {
    if (!std::isfinite(links_[link])) return true;
    std::vector<double> wide = links_;
    wide[link] *= times();
    return wanted(link, best_rates(wide)) <= kFull * links_[link];
  }

  /// The best rate of each claim with such links; 0 for those that nothing
  /// bounds.
  Amounts best_rates(const std::vector<double>& links) const {
    NodeResources node = node_;
    node.bytes_per_second = links.front();
    node.bucket_bytes_per_second.assign(links.begin() + 1, links.end());
    const RateProblem jobs(node, claims_, options_);
    Amounts cache;
    Amounts threads;
    for (std::size_t i = 0; i < jobs.parties().size(); ++i) {
      const Grant& grant = grants_[jobs.place_of(i)];
      cache.push_back(grant.cache_bytes);
      threads.push_back(
          std::min(grant.threads, jobs.parties()[i].claim->most_threads));
    }
    const Amounts found = jobs.rates_with(cache, threads);
    Amounts rates(claims_.size(), 0);
    for (std::size_t i = 0; i < found.size(); ++i) {
      rates[jobs.place_of(i)] = found[i];
    }
    return rates;
  }

  /// Bytes a second, with the reads of claims of which no more is known.
  double wanted(std::size_t link, const Amounts& rates) const {
    double sum = 0;
    for (const std::size_t i : readers_[link]) {
      sum +=
          needs_[i] ? rates[i] * bytes_[i] : claims_[i].used_bytes_per_second;
    }
    return sum;
  }

  double with_headroom(std::size_t i, std::size_t link,
                       const Amounts& rates) const {
    const double equal =
        links_[link] / static_cast<double>(readers_[link].size());
    if (needs_[i]) return std::max(equal, kHeadroom * *needs_[i]);
    double left = links_[link];
    for (const std::size_t j : readers_[link]) {
      if (needs_[j]) left -= rates[j] * bytes_[j];
    }
    return std::max(equal, left);
  }

  std::vector<double> present() const {
    std::vector<double> limits;
    for (const Grant& grant : grants_) limits.push_back(grant.bytes_per_second);
    return limits;
  }

  bool is_worth_it(const std::vector<double>& limits,
                   const std::vector<bool>& all_have_room) const {
    std::vector<Grant> then = grants_;
    Amounts now(claims_.size(), 0);
    for (std::size_t i = 0; i < limits.size(); ++i) {
      const double present = grants_[i].bytes_per_second;
      if (std::isfinite(present) != std::isfinite(limits[i])) return true;
      if (all_have_room[i] && present < limits[i]) return true;
      then[i].bytes_per_second = limits[i];
      if (needs_[i]) {
        now[i] = std::min({predict(claims_[i].speed, grants_[i]).rate,
                           claims_[i].outside_ceiling, claims_[i].wanted});
      }
    }
    for (std::size_t link = 0; link < links_.size(); ++link) {
      if (wanted(link, now) > (1 + kNoise) * links_[link]) return true;
    }
    std::vector<Claim> claims;
    std::vector<Grant> before;
    std::vector<Grant> after;
    for (std::size_t i = 0; i < limits.size(); ++i) {
      if (all_have_room[i]) continue;
      claims.push_back(claims_[i]);
      before.push_back(grants_[i]);
      after.push_back(then[i]);
    }
    return relative_gain(options_.objective,
                         normalised_rates(node_, claims, after),
                         normalised_rates(node_, claims, before)) >= kLeastGain;
  }

  const NodeResources& node_;
  const std::vector<double> links_;
  const AllocationOptions& options_;
  std::vector<Claim> claims_;
  const std::vector<Grant> grants_;
  std::vector<std::vector<std::size_t>> readers_;  ///< The claims on each link.
  std::vector<std::optional<double>> needs_;
  std::vector<double> bytes_;  ///< Bytes of a sample.
};

}  // namespace

std::vector<double> lend_bandwidth(const NodeResources& node,
                                   std::span<const Claim> claims,
                                   std::span<const Grant> grants,
                                   std::span<const LinkReading> readings,
                                   const AllocationOptions& options) {
  return Lending(node, claims, grants, readings, options).limits();
}

}  // namespace leat
