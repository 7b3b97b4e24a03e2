// How shares are found.
//
// With the cache dealt out, what a sample needs of each resource is fixed, and
// the best rates are a linear program (throughput) or a water level (fairness),
// with threads that can be split. Whole threads are then given
// one by one to where the next gains most, which is optimal as long as nothing
// but threads runs short, since a rate is concave in its threads; where reads
// run short too, threads are moved between pairs for as long as that helps.
//
// The cache: with rates fixed, a byte of it is best spent where it saves most
// reading, rate * bytes of a sample / bytes of the dataset (SiloD). Rates and
// cache are found in turns, from several beginnings, and then bytes are moved
// between pairs.

#include "leat/tune/allocation.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "leat/tune/packing.h"

namespace leat {
namespace {

constexpr double kSlack = 1e-9;

/// The whole part of an equal part, at least 1; infinite stays.
double whole_part(double of, std::size_t parts) {
  return std::max(1.0, std::floor(of / static_cast<double>(parts)));
}

/// Rounded up, but for what is rounding only.
double whole(double amount) { return std::ceil(amount - kSlack); }

/// Equal parts, but to nobody more than there is room for.
std::vector<double> even_parts(double of, std::span<const double> room) {
  std::vector<std::size_t> order(room.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return room[a] < room[b]; });
  std::vector<double> parts(room.size(), 0);
  for (std::size_t done = 0; done < order.size(); ++done) {
    const double each = of / static_cast<double>(order.size() - done);
    parts[order[done]] = std::clamp(room[order[done]], 0.0, each);
    of -= parts[order[done]];
  }
  return parts;
}

/// A claim that something bounds.
struct Party {
  const Claim* claim = nullptr;
  double alone = 1;
  double most = 0;   ///< Samples a second that could ever be.
  double least = 0;  ///< That the floor promises.
  double least_threads = 1;
  double seconds_per_sample = 0;  ///< Of one thread.

  double normalised(double rate) const { return rate / alone; }
  double threads_for(double rate) const { return rate * seconds_per_sample; }
  double rate_of(double threads) const {
    return seconds_per_sample > 0 ? threads / seconds_per_sample : kUnbounded;
  }
};

class Allocator {
 public:
  Allocator(const NodeResources& node, std::span<const Claim> claims,
            const AllocationOptions& options)
      : options_(options), even_(even_split(node, claims)), rest_(node) {
    rest_.threads =
        std::max(std::floor(node.threads), static_cast<double>(claims.size()));
    for (std::size_t i = 0; i < claims.size(); ++i) admit(node, claims[i], i);
  }

  std::vector<Grant> run() {
    std::vector<Grant> grants = even_;
    if (parties_.empty()) return grants;
    // With threads that can be split first, and then with whole ones.
    Amounts cache = best_cache({});
    Amounts rates = rates_with(cache, whole_threads(cache));
    for (int turn = 0; turn < 2 && rest_.cache_bytes > 0; ++turn) {
      const Amounts other = best_cache(whole_threads(cache));
      const Amounts found = rates_with(other, whole_threads(other));
      if (!is_better_than(found, rates)) break;
      cache = other;
      rates = found;
    }
    deal_out(cache, rates, grants);
    return grants;
  }

 private:
  using Amounts = std::vector<double>;  ///< One for each party.

  void admit(const NodeResources& node, const Claim& claim, std::size_t index) {
    const double alone = rate_alone(node, claim);
    const Grant& even = even_[index];
    if (!std::isfinite(alone) || alone <= 0) {
      rest_.threads -= even.threads;
      rest_.in_flight -= std::isfinite(even.in_flight) ? even.in_flight : 0;
      rest_.bytes_per_second -=
          std::isfinite(even.bytes_per_second) ? even.bytes_per_second : 0;
      rest_.cache_bytes -= even.cache_bytes;
      return;
    }
    Party party{.claim = &claim, .alone = alone};
    party.seconds_per_sample = 1 / claim.speed.rate_per_thread;
    Grant promised = even;  // Without what a remainder brought some.
    promised.threads = std::min(
        claim.most_threads, whole_part(std::floor(node.threads), even_.size()));
    promised.in_flight = std::min(claim.most_in_flight,
                                  whole_part(node.in_flight, even_.size()));
    // Not bounded by what is outside: two nodes that each follow the other
    // would go down together.
    party.least =
        options_.floor * std::min(alone, predict(claim.speed, promised).rate);
    party.most = std::max(party.least, std::min(alone, claim.outside_ceiling));
    party.least_threads = std::max(1.0, whole(party.threads_for(party.least)));
    parties_.push_back(party);
    places_.push_back(index);
  }

  double waits_of(std::size_t i, double cache_bytes) const {
    const JobSpeed& speed = parties_[i].claim->speed;
    return speed.latency_seconds * speed.reads_per_sample *
           missed_part(speed, cache_bytes);
  }
  double bytes_of(std::size_t i, double cache_bytes) const {
    const JobSpeed& speed = parties_[i].claim->speed;
    return speed.read_bytes_per_sample * missed_part(speed, cache_bytes);
  }

  /// What there is to share; the rest of a rate's bounds are in `most`.
  struct Problem {
    std::vector<PackingItem> items;  ///< Worth, needs; most: beyond `least`.
    Amounts least;
    PackedAmounts capacity{};  ///< Beyond what `least` needs.
    bool is_feasible = true;
  };

  /// REQUIRES: `threads` empty (they can be split) or one for each.
  Problem problem(const Amounts& cache, const Amounts& threads) const {
    Problem made;
    made.capacity = {threads.empty() ? rest_.threads : kUnbounded,
                     rest_.in_flight, rest_.bytes_per_second};
    for (std::size_t i = 0; i < parties_.size(); ++i) {
      const Party& party = parties_[i];
      PackingItem item{.worth = 1 / party.alone};
      item.needs = {threads.empty() ? party.seconds_per_sample : 0,
                    waits_of(i, cache[i]), bytes_of(i, cache[i])};
      double most = party.most;
      if (!threads.empty()) most = std::min(most, party.rate_of(threads[i]));
      if (item.needs[1] > 0) {
        most = std::min(most, party.claim->most_in_flight / item.needs[1]);
      }
      const double least = std::min(party.least, most);
      item.most = most - least;
      for (std::size_t r = 0; r < kPackedResources; ++r) {
        made.capacity[r] -= item.needs[r] * least;
      }
      // The floor, unless the cache went elsewhere.
      if (least < party.least * (1 - kSlack)) made.is_feasible = false;
      made.least.push_back(least);
      made.items.push_back(item);
    }
    const PackedAmounts all = {rest_.threads, rest_.in_flight,
                               rest_.bytes_per_second};
    for (std::size_t r = 0; r < kPackedResources; ++r) {
      if (made.capacity[r] >= 0) continue;
      if (made.capacity[r] < -kSlack * all[r]) made.is_feasible = false;
      made.capacity[r] = 0;
    }
    return made;
  }

  Amounts solve(const Problem& made) const {
    Amounts rates = options_.objective == Objective::kThroughput
                        ? pack(made.items, made.capacity)
                        : raise_together(made);
    for (std::size_t i = 0; i < rates.size(); ++i) rates[i] += made.least[i];
    return rates;
  }

  /// Raises the least normalised rates together until they are at their most
  /// or something they need runs out; then the others. Beyond `least`.
  Amounts raise_together(const Problem& made) const {
    Amounts rates(parties_.size(), 0);
    std::vector<bool> is_done(parties_.size(), false);
    PackedAmounts left = made.capacity;
    for (std::size_t round = 0; round <= parties_.size(); ++round) {
      const auto at_level = [&](std::size_t i, double level) {
        return is_done[i]
                   ? rates[i]
                   : std::clamp(level * parties_[i].alone - made.least[i], 0.0,
                                made.items[i].most);
      };
      const auto fits = [&](double level) {
        PackedAmounts used{};
        for (std::size_t i = 0; i < rates.size(); ++i) {
          for (std::size_t r = 0; r < kPackedResources; ++r) {
            used[r] += made.items[i].needs[r] * at_level(i, level);
          }
        }
        for (std::size_t r = 0; r < kPackedResources; ++r) {
          if (used[r] > made.capacity[r]) return false;
        }
        return true;
      };
      double low = 0;
      double high = 1;
      if (fits(high)) low = high;
      for (int half = 0; half < 45 && low < high; ++half) {
        const double middle = (low + high) / 2;
        (fits(middle) ? low : high) = middle;
      }
      for (std::size_t i = 0; i < rates.size(); ++i)
        rates[i] = at_level(i, low);
      if (low >= 1) break;
      left = made.capacity;
      for (std::size_t i = 0; i < rates.size(); ++i) {
        for (std::size_t r = 0; r < kPackedResources; ++r) {
          left[r] -= made.items[i].needs[r] * rates[i];
        }
      }
      bool is_over = true;
      for (std::size_t i = 0; i < rates.size(); ++i) {
        if (rates[i] >= made.items[i].most * (1 - kSlack)) is_done[i] = true;
        for (std::size_t r = 0; r < kPackedResources; ++r) {
          if (made.items[i].needs[r] > 0 && std::isfinite(left[r]) &&
              left[r] <= 1e-7 * made.capacity[r]) {
            is_done[i] = true;
          }
        }
        is_over = is_over && is_done[i];
      }
      if (is_over) break;
    }
    return rates;
  }

  Amounts normalised(const Amounts& rates) const {
    Amounts sorted(rates.size());
    for (std::size_t i = 0; i < rates.size(); ++i) {
      sorted[i] = parties_[i].normalised(rates[i]);
    }
    std::sort(sorted.begin(), sorted.end());
    return sorted;
  }

  bool is_better_than(const Amounts& rates, const Amounts& than) const {
    return is_better(options_.objective, normalised(rates), normalised(than));
  }

  // --- the cache ------------------------------------------------------------

  /// More would be of no use, or is not allowed.
  double most_cache(std::size_t i) const {
    const Claim& claim = *parties_[i].claim;
    return std::min(claim.speed.dataset_bytes, claim.most_cache_bytes);
  }

  Amounts even_cache() const {
    Amounts cache;
    for (const std::size_t place : places_) {
      cache.push_back(even_[place].cache_bytes);
    }
    return cache;
  }

  /// To `first`, if there is one, and then to whom a byte saves most at these
  /// rates.
  Amounts cache_for(const Amounts& rates, std::size_t first,
                    bool saves_bytes) const {
    std::vector<std::pair<double, std::size_t>> saved;
    for (std::size_t i = 0; i < rates.size(); ++i) {
      const JobSpeed& speed = parties_[i].claim->speed;
      if (speed.dataset_bytes <= 0) continue;
      const double each = saves_bytes ? bytes_of(i, 0) : waits_of(i, 0);
      const double saving = rates[i] * each / speed.dataset_bytes;
      saved.emplace_back(i == first ? -kUnbounded : -saving, i);
    }
    std::sort(saved.begin(), saved.end());
    Amounts cache(rates.size(), 0);
    double left = std::max(0.0, rest_.cache_bytes);
    for (const auto& [unused, i] : saved) {
      cache[i] = std::min(left, most_cache(i));
      left -= cache[i];
    }
    return cache;
  }

  /// The best rates; nothing if the floor breaks.
  std::optional<Amounts> feasible_rates(const Amounts& cache,
                                        const Amounts& threads) const {
    const Problem made = problem(cache, threads);
    if (!made.is_feasible) return std::nullopt;
    return solve(made);
  }

  /// REQUIRES: as problem().
  Amounts best_cache(const Amounts& threads) const {
    Amounts best = even_cache();
    std::optional<Amounts> rates = feasible_rates(best, threads);
    if (rest_.cache_bytes <= 0 || !rates) return best;
    const auto offer = [&](const Amounts& cache) {
      std::optional<Amounts> found = feasible_rates(cache, threads);
      if (!found || !is_better_than(*found, *rates)) return false;
      best = cache;
      rates = std::move(found);
      return true;
    };
    Amounts most;
    for (const Party& party : parties_) most.push_back(party.most);
    // Each first, for what comes next is what few orders tell apart.
    for (std::size_t first = 0; first <= parties_.size(); ++first) {
      for (const bool saves_bytes : {true, false}) {
        Amounts from = most;
        for (int turn = 0; turn < 4; ++turn) {
          const Amounts cache = cache_for(from, first, saves_bytes);
          offer(cache);
          offer(between(cache, even_cache()));
          const std::optional<Amounts> next = feasible_rates(cache, threads);
          if (!next || *next == from) break;
          from = *next;
        }
      }
    }
    for (double part = 0.25; part > 0.01; part /= 2) {
      for (std::size_t turn = 0; turn < 8; ++turn) {
        if (!move_cache(part * rest_.cache_bytes, best, offer)) break;
      }
    }
    return best;
  }

  Amounts between(const Amounts& a, const Amounts& b) const {
    Amounts middle(a.size());
    for (std::size_t i = 0; i < a.size(); ++i) middle[i] = (a[i] + b[i]) / 2;
    return middle;
  }

  template <class Offer>
  bool move_cache(double bytes, const Amounts& best, const Offer& offer) const {
    bool has_moved = false;
    for (std::size_t from = 0; from < best.size(); ++from) {
      for (std::size_t to = 0; to < best.size(); ++to) {
        if (from == to) continue;
        Amounts cache = best;
        const double moved =
            std::min({bytes, cache[from], most_cache(to) - cache[to]});
        if (moved <= 0) continue;
        cache[from] -= moved;
        cache[to] += moved;
        has_moved = offer(cache) || has_moved;
      }
    }
    return has_moved;
  }

  // --- whole threads --------------------------------------------------------

  Amounts rates_with(const Amounts& cache, const Amounts& threads) const {
    return solve(problem(cache, threads));
  }

  Amounts whole_threads(const Amounts& cache) const {
    Amounts threads;
    double left = rest_.threads;
    for (const Party& party : parties_) {
      threads.push_back(party.least_threads);
      left -= party.least_threads;
    }
    Amounts most = rates_with(cache, Amounts(parties_.size(), kUnbounded));
    bool reads_run_short = false;
    for (std::size_t i = 0; i < parties_.size(); ++i) {
      reads_run_short |= most[i] < parties_[i].most * (1 - kSlack);
    }
    if (reads_run_short) {
      // First towards what the relaxed rates need, then to any use.
      if (const auto rates = feasible_rates(cache, {}))
        give(*rates, threads, left);
    }
    for (std::size_t i = 0; i < parties_.size(); ++i)
      most[i] = parties_[i].most;
    give(most, threads, left);
    if (reads_run_short) move_threads(cache, threads);
    return threads;
  }

  /// Gives threads one by one while one gains, none beyond the rate `most`.
  void give(const Amounts& most, Amounts& threads, double& left) const {
    while (left >= 1) {
      std::optional<std::size_t> best;
      double best_gain = 0;
      double best_level = kUnbounded;
      for (std::size_t i = 0; i < parties_.size(); ++i) {
        const Party& party = parties_[i];
        const double now = std::min(most[i], party.rate_of(threads[i]));
        const double then = std::min(most[i], party.rate_of(threads[i] + 1));
        const double gain = party.normalised(then) - party.normalised(now);
        if (gain <= kSlack) continue;
        const double level = party.normalised(now);
        // Of two that are as low as each other, the one that climbs further:
        // what follows it in the order is then the higher.
        const bool is_lower = level < best_level - kSlack;
        const bool is_as_low = level <= best_level + kSlack;
        const bool is_next = options_.objective == Objective::kThroughput
                                 ? gain > best_gain
                                 : is_lower || (is_as_low && gain > best_gain);
        if (!is_next) continue;
        best = i;
        best_gain = gain;
        best_level = level;
      }
      if (!best) return;
      threads[*best] += 1;
      left -= 1;
    }
  }

  void move_threads(const Amounts& cache, Amounts& threads) const {
    Amounts rates = rates_with(cache, threads);
    for (std::size_t turn = 0; turn < 2 * parties_.size(); ++turn) {
      const Amounts before = threads;
      for (std::size_t from = 0; from < before.size(); ++from) {
        if (before[from] <= parties_[from].least_threads) continue;
        for (std::size_t to = 0; to < before.size(); ++to) {
          if (from == to ||
              parties_[to].rate_of(before[to]) >= parties_[to].most) {
            continue;
          }
          Amounts moved = before;
          moved[from] -= 1;
          moved[to] += 1;
          const Amounts found = rates_with(cache, moved);
          if (!is_better_than(found, rates)) continue;
          rates = found;
          threads = moved;
        }
      }
      if (threads == before) return;
    }
  }

  // --- grants ---------------------------------------------------------------

  void deal_out(const Amounts& cache, const Amounts& rates,
                std::vector<Grant>& grants) const {
    const auto count = static_cast<double>(parties_.size());
    double threads = rest_.threads;
    double bytes = rest_.bytes_per_second;
    for (std::size_t i = 0; i < parties_.size(); ++i) {
      Grant& grant = grants[places_[i]];
      grant.cache_bytes = cache[i];
      grant.threads = std::max(parties_[i].least_threads,
                               whole(parties_[i].threads_for(rates[i])));
      grant.bytes_per_second = rates[i] * bytes_of(i, cache[i]);
      threads -= grant.threads;
      bytes -= grant.bytes_per_second;
    }
    deal_out_requests(cache, rates, grants);
    for (std::size_t i = 0; i < parties_.size(); ++i) {
      Grant& grant = grants[places_[i]];
      grant.bytes_per_second += std::max(0.0, bytes / count);
      if (threads >= 1 && grant.threads < parties_[i].claim->most_threads) {
        grant.threads += 1;
        threads -= 1;
      }
    }
  }

  /// Whole ones: rounded down, then to whoever lost most by that.
  void deal_out_requests(const Amounts& cache, const Amounts& rates,
                         std::vector<Grant>& grants) const {
    if (!std::isfinite(rest_.in_flight)) {
      for (const std::size_t place : places_) {
        grants[place].in_flight = kUnbounded;
      }
      return;
    }
    double left = std::max(std::floor(rest_.in_flight),
                           static_cast<double>(parties_.size()));
    std::vector<std::pair<double, std::size_t>> lost;
    for (std::size_t i = 0; i < parties_.size(); ++i) {
      const double needed = rates[i] * waits_of(i, cache[i]);
      double& given = grants[places_[i]].in_flight;
      given = std::max(1.0, std::floor(needed + kSlack));
      left -= given;
      const double missing = needed > 0 ? (needed - given) / needed : 0;
      lost.emplace_back(-missing * parties_[i].normalised(rates[i]), i);
    }
    std::sort(lost.begin(), lost.end());
    for (const auto& [loss, i] : lost) {
      if (loss >= 0 || left < 1) break;
      grants[places_[i]].in_flight += 1;
      left -= 1;
    }
    // One request is the least, so that these may be more than there were.
    while (left < 0) {
      double* most = nullptr;
      for (const std::size_t place : places_) {
        double& given = grants[place].in_flight;
        if (most == nullptr || given > *most) most = &given;
      }
      if (*most <= 1) break;
      *most -= 1;
      left += 1;
    }
    const double each = std::floor(left / static_cast<double>(parties_.size()));
    for (std::size_t i = 0; each >= 1 && i < parties_.size(); ++i) {
      double& given = grants[places_[i]].in_flight;
      given = std::max(
          given, std::min(given + each, parties_[i].claim->most_in_flight));
    }
  }

  const AllocationOptions options_;
  const std::vector<Grant> even_;
  NodeResources rest_;  ///< What the parties share.
  std::vector<Party> parties_;
  std::vector<std::size_t> places_;  ///< Of each party, among the claims.
};

}  // namespace

std::string_view to_string(Objective objective) {
  return objective == Objective::kThroughput ? "throughput" : "fairness";
}

double rate_alone(const NodeResources& node, const Claim& claim) {
  return predict(claim.speed,
                 {.threads = std::min(claim.most_threads,
                                      std::max(1.0, std::floor(node.threads))),
                  .in_flight = std::min(claim.most_in_flight,
                                        std::max(1.0, node.in_flight)),
                  .bytes_per_second = node.bytes_per_second,
                  .cache_bytes =
                      std::min(node.cache_bytes, claim.most_cache_bytes)})
      .rate;
}

std::vector<Grant> even_split(const NodeResources& node,
                              std::span<const Claim> claims) {
  std::vector<Grant> grants;
  const std::size_t count = claims.size();
  std::vector<double> rooms;
  for (const Claim& claim : claims) rooms.push_back(claim.most_cache_bytes);
  const std::vector<double> caches = even_parts(node.cache_bytes, rooms);
  for (std::size_t i = 0; i < count; ++i) {
    const auto rest_of = [&](double of) {
      const double each = std::floor(of / static_cast<double>(count));
      const double left = std::floor(of) - each * static_cast<double>(count);
      return std::max(1.0, each + (static_cast<double>(i) < left ? 1 : 0));
    };
    grants.push_back(
        {.threads = rest_of(node.threads),
         .in_flight = std::isfinite(node.in_flight) ? rest_of(node.in_flight)
                                                    : kUnbounded,
         .bytes_per_second = node.bytes_per_second / static_cast<double>(count),
         .cache_bytes = caches[i]});
  }
  return grants;
}

void deal_out_cache(const NodeResources& node, std::span<const Claim> claims,
                    std::span<Grant> grants) {
  double left = node.cache_bytes;
  std::vector<double> rooms;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    left -= grants[i].cache_bytes;
    rooms.push_back(claims[i].most_cache_bytes - grants[i].cache_bytes);
  }
  const std::vector<double> more = even_parts(std::max(0.0, left), rooms);
  for (std::size_t i = 0; i < claims.size(); ++i) {
    grants[i].cache_bytes += more[i];
  }
}

std::vector<double> normalised_rates(const NodeResources& node,
                                     std::span<const Claim> claims,
                                     std::span<const Grant> grants) {
  std::vector<double> rates;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    const double alone = rate_alone(node, claims[i]);
    if (!std::isfinite(alone) || alone <= 0) continue;
    Grant grant = grants[i];
    grant.threads = std::min(grant.threads, claims[i].most_threads);
    grant.in_flight = std::min(grant.in_flight, claims[i].most_in_flight);
    const double rate = std::min(predict(claims[i].speed, grant).rate,
                                 claims[i].outside_ceiling);
    rates.push_back(std::min(1.0, rate / alone));
  }
  std::sort(rates.begin(), rates.end());
  return rates;
}

bool is_better(Objective objective, std::span<const double> rates,
               std::span<const double> than) {
  if (objective == Objective::kThroughput) {
    const double sum = std::accumulate(rates.begin(), rates.end(), 0.0);
    return sum > std::accumulate(than.begin(), than.end(), 0.0) + kSlack;
  }
  for (std::size_t i = 0; i < rates.size(); ++i) {
    if (rates[i] > than[i] + kSlack) return true;
    if (rates[i] < than[i] - kSlack) return false;
  }
  return false;
}

double relative_gain(Objective objective, std::span<const double> better,
                     std::span<const double> worse) {
  const auto value = [&](std::span<const double> rates) {
    if (rates.empty()) return 0.0;
    return objective == Objective::kThroughput
               ? std::accumulate(rates.begin(), rates.end(), 0.0)
               : rates.front();
  };
  const double before = value(worse);
  if (before <= 0) return value(better) > 0 ? kUnbounded : 0;
  return value(better) / before - 1;
}

std::vector<Grant> allocate(const NodeResources& node,
                            std::span<const Claim> claims,
                            const AllocationOptions& options) {
  std::vector<Grant> grants = Allocator(node, claims, options).run();
  std::vector<Grant> even = even_split(node, claims);
  const bool is_even_better =
      is_better(options.objective, normalised_rates(node, claims, even),
                normalised_rates(node, claims, grants));
  return is_even_better ? even : grants;
}

}  // namespace leat
