// The best rates of a node's jobs for a given division of the cache.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "leat/tune/allocation.h"
#include "leat/tune/job_speed.h"
#include "leat/tune/packing.h"

namespace leat {

/// A smaller difference is rounding.
inline constexpr double kRateSlack = 1e-9;

/// Rounded up, except for mere rounding errors.
inline double whole(double amount) { return std::ceil(amount - kRateSlack); }

/// One for each party.
using Amounts = std::vector<double>;

// Indices of the shared resources; links_of() the node come last.
inline constexpr std::size_t kThreadRow = 0;
inline constexpr std::size_t kRequestRow = 1;
inline constexpr std::size_t kFirstLinkRow = 2;

/// The resources that the claims share.
PackedAmounts shared_amounts(const NodeResources& node);
/// The resources that a claim needs for a sample, with this much cache.
PackedAmounts needed_amounts(const NodeResources& node, const Claim& claim,
                             double cache_bytes);

/// A claim with known bounds.
struct Party {
  const Claim* claim = nullptr;
  double alone = 1;  ///< Its rate alone, / its worth.
  double most = 0;   ///< The highest possible samples a second.
  double least = 0;  ///< Promised by the floor.

  double normalised(double rate) const { return rate / alone; }
};

/// With the cache divided, the needs of a sample are fixed for each resource,
/// and the best rates are a linear program (throughput) or a water level
/// (fairness), with threads that can be split.
///
/// `threads` is empty if they can be split; otherwise it has a count for each
/// claim.
class RateProblem {
 public:
  /// The claims must outlive it.
  RateProblem(const NodeResources& node, std::span<const Claim> claims,
              const AllocationOptions& options);

  Objective objective() const { return options_.objective; }
  const std::vector<Party>& parties() const { return parties_; }
  /// The index of a party among the claims.
  std::size_t place_of(std::size_t party) const { return places_[party]; }
  /// The resources that the parties share: all but the even shares of claims
  /// without known bounds.
  const NodeResources& shared() const { return rest_; }
  /// One for each claim.
  const std::vector<Grant>& even() const { return even_; }

  /// Seconds that threads take for one sample.
  double seconds_of(std::size_t party, double cache_bytes) const;
  /// The whole threads that the floor needs; no more than an even split gives,
  /// which suffice with that split's cache.
  double least_threads(std::size_t party, double cache_bytes) const;
  /// Samples a second, with no more threads than it claims.
  double rate_of(std::size_t party, double threads, double cache_bytes) const;
  /// Seconds for which requests for one sample are in flight.
  double waits_of(std::size_t party, double cache_bytes) const;
  /// Bytes read for one sample.
  double bytes_of(std::size_t party, double cache_bytes) const;

  /// The best rates; nothing if they break the floor.
  std::optional<Amounts> feasible_rates(const Amounts& cache,
                                        const Amounts& threads) const;
  /// The best rates, even if they break the floor.
  Amounts rates_with(const Amounts& cache, const Amounts& threads) const;
  bool is_better_than(const Amounts& rates, const Amounts& than) const;

 private:
  /// The resources to share; the other bounds of a rate are in `most`.
  struct Problem {
    std::vector<PackingItem> items;  ///< Worth, needs; most: beyond `least`.
    Amounts least;
    PackedAmounts capacity;  ///< Beyond what `least` needs.
    bool is_feasible = true;
  };

  void admit(const NodeResources& node, const Claim& claim, std::size_t index);
  Problem problem(const Amounts& cache, const Amounts& threads) const;
  Amounts solve(const Problem& made) const;
  /// Raises the least normalised rates together until they are at their most or
  /// a resource they need runs out; then the others. Beyond `least`.
  Amounts raise_together(const Problem& made) const;
  Amounts normalised(const Amounts& rates) const;

  const AllocationOptions options_;
  const std::vector<Grant> even_;
  NodeResources rest_;
  std::vector<Party> parties_;
  std::vector<std::size_t> places_;
};

}  // namespace leat
