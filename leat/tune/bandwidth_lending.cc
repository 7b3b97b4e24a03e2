#include "leat/tune/bandwidth_lending.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "leat/tune/rate_problem.h"

namespace leat {
namespace {

constexpr double kHeld = 0.95;      // Reads this part of its limit: held by it.
constexpr double kHeadroom = 1.25;  // Of a limit, above what is needed.
constexpr double kMore = 1.05;      // That is kept above what was seen,
constexpr double kBusyMore = 1.25;  // or, where others may be the cause, and
constexpr double kRoom = 0.02;      // that of the whole beside it.
constexpr double kFull = 0.95;      // Of the whole is wanted: some run short.
constexpr double kLeastGain = 0.005;  // For which limits move.
constexpr double kNoise = 0.01;

class Lending {
 public:
  Lending(const NodeResources& node, std::span<const Claim> claims,
          std::span<const Grant> grants, const LinkReading& reading,
          const AllocationOptions& options)
      : node_(node),
        options_(options),
        claims_(claims.begin(), claims.end()),
        grants_(grants.begin(), grants.end()) {
    const std::vector<double>& read = reading.bytes_per_second;
    for (std::size_t i = 0; i < claims_.size(); ++i) {
      const double reads = (reading.is_full ? kBusyMore : kMore) * read[i];
      needs_.push_back(needed_by(i));
      bytes_.push_back(bytes_of(i));
      const bool is_held = read[i] >= kHeld * grants[i].bytes_per_second;
      if (bytes_[i] > 0 && !is_held) {
        claims_[i].wanted = (reads + kRoom * node.bytes_per_second) / bytes_[i];
      }
      claims_[i].used_bytes_per_second = reads;
    }
  }

  std::vector<double> limits() {
    // As if each had a link of its own.
    const Amounts most = best_rates(node_.bytes_per_second *
                                    static_cast<double>(claims_.size() + 1));
    const Amounts best = best_rates(node_.bytes_per_second);
    const bool all_have_room = wanted(most) <= kFull * node_.bytes_per_second;
    std::vector<double> limits;
    for (std::size_t i = 0; i < claims_.size(); ++i) {
      limits.push_back(node_.bytes_per_second);
      if (all_have_room) continue;
      const bool runs_short = best[i] < most[i] * (1 - 1e-6);
      limits[i] = runs_short ? std::max(1.0, best[i] * bytes_[i])
                             : std::min(limits[i], with_headroom(i, best));
    }
    return is_worth_it(limits, all_have_room) ? limits : present();
  }

 private:
  double bytes_of(std::size_t i) const {
    const JobSpeed& speed = claims_[i].speed;
    return speed.read_bytes_per_sample *
           missed_part(speed, grants_[i].cache_bytes);
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

  /// Of each claim; 0 of those that nothing bounds.
  Amounts best_rates(double bytes_per_second) const {
    NodeResources node = node_;
    node.bytes_per_second = bytes_per_second;
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

  double equal_part() const {
    return node_.bytes_per_second / static_cast<double>(claims_.size());
  }

  /// Bytes a second, with what is read by those of whom no more is known.
  double wanted(const Amounts& rates) const {
    double sum = 0;
    for (std::size_t i = 0; i < rates.size(); ++i) {
      sum +=
          needs_[i] ? rates[i] * bytes_[i] : claims_[i].used_bytes_per_second;
    }
    return sum;
  }

  double with_headroom(std::size_t i, const Amounts& rates) const {
    if (needs_[i]) return std::max(equal_part(), kHeadroom * *needs_[i]);
    double left = node_.bytes_per_second;
    for (std::size_t j = 0; j < rates.size(); ++j) {
      if (needs_[j]) left -= rates[j] * bytes_[j];
    }
    return std::max(equal_part(), left);
  }

  std::vector<double> present() const {
    std::vector<double> limits;
    for (const Grant& grant : grants_) limits.push_back(grant.bytes_per_second);
    return limits;
  }

  bool is_worth_it(const std::vector<double>& limits,
                   bool all_have_room) const {
    std::vector<Grant> then = grants_;
    Amounts now(claims_.size(), 0);
    for (std::size_t i = 0; i < limits.size(); ++i) {
      if (!std::isfinite(grants_[i].bytes_per_second)) return true;  // New.
      if (all_have_room && grants_[i].bytes_per_second < limits[i]) return true;
      then[i].bytes_per_second = limits[i];
      if (needs_[i]) {
        now[i] = std::min({predict(claims_[i].speed, grants_[i]).rate,
                           claims_[i].outside_ceiling, claims_[i].wanted});
      }
    }
    if (wanted(now) > (1 + kNoise) * node_.bytes_per_second) return true;
    return relative_gain(
               options_.objective, normalised_rates(node_, claims_, then),
               normalised_rates(node_, claims_, grants_)) >= kLeastGain;
  }

  const NodeResources& node_;
  const AllocationOptions& options_;
  std::vector<Claim> claims_;
  const std::vector<Grant> grants_;
  std::vector<std::optional<double>> needs_;
  std::vector<double> bytes_;  ///< Of a sample.
};

}  // namespace

std::vector<double> lend_bandwidth(const NodeResources& node,
                                   std::span<const Claim> claims,
                                   std::span<const Grant> grants,
                                   const LinkReading& reading,
                                   const AllocationOptions& options) {
  return Lending(node, claims, grants, reading, options).limits();
}

}  // namespace leat
