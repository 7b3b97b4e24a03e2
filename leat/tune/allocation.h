// Shares of a node for the jobs on it, from each job's properties.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "leat/tune/job_speed.h"

namespace leat {

/// The resources that jobs share. Threads and requests are whole; requests and
/// any bandwidth may be unbounded.
struct NodeResources {
  double threads = 1;
  double in_flight = kUnbounded;
  double bytes_per_second = kUnbounded;  ///< For all reads together.
  /// The same for all reads of each bucket, by Claim::buckets.
  std::vector<double> bucket_bytes_per_second;
  double cache_bytes = 0;
  double disk_bytes = 0;  ///< The part of `cache_bytes` on disk.
};

enum class Objective : std::uint8_t {
  kThroughput,  ///< The sum over jobs of rate / rate alone on the node.
  kFairness,    ///< The least of these; then the second least, and so on.
};
/// "throughput", "fairness".
std::string_view to_string(Objective objective);

/// One job that wants a share.
struct Claim {
  JobSpeed speed;
  double worth = 1;  ///< The weight of its rate / rate alone; in (0, 1].
  /// The rate that its ranks on other nodes reach: more would lift nothing, so
  /// it is not given.
  double outside_ceiling = kUnbounded;
  /// The rate it was seen to reach, and room for more. Beyond it nothing is
  /// kept for it, not even its floor.
  double wanted = kUnbounded;
  /// For a claim that nothing bounds: the most of its even share of the
  /// bandwidth that is kept for it.
  double used_bytes_per_second = kUnbounded;
  double most_threads = kUnbounded;      ///< That its user allows; at least 1.
  double most_in_flight = kUnbounded;    ///< That its user allows; at least 1.
  double most_cache_bytes = kUnbounded;  ///< That its user allows; may be 0.
  /// The limited buckets of the node that it reads, each once. All its reads
  /// count in each of them: how much comes from which is not known.
  std::vector<std::size_t> buckets = {};
};

struct AllocationOptions {
  Objective objective = Objective::kThroughput;
  /// No job is given less than this part of its rate under an even split, in
  /// [0, 1].
  double floor = 0.5;
};

/// The bounds of reads, in bytes a second: the node's link, then each bucket.
std::vector<double> links_of(const NodeResources& node);
/// Calls visit(place) with the place in links_of() of each that a claim reads
/// through.
template <class Visit>
void for_each_link(const Claim& claim, const Visit& visit) {
  visit(std::size_t{0});
  for (const std::size_t bucket : claim.buckets) visit(bucket + 1);
}
/// The least of a claim's, in bytes a second.
double narrowest_link(const NodeResources& node, const Claim& claim);

/// The rate of a job that has the node for itself.
double rate_alone(const NodeResources& node, const Claim& claim);

/// An equal part for each: whole threads and requests, at least one of each;
/// and of each link's bandwidth an equal part for those that read through it.
/// If there are more jobs than threads, more threads are given than there are.
std::vector<Grant> even_split(const NodeResources& node,
                              std::span<const Claim> claims);

/// The best shares that were found, in the order of `claims`; never worse than
/// even_split() by the objective. A resource that helps nobody is not given,
/// but for one thread of headroom each; requests and bandwidth that are left
/// are dealt out evenly. Exact for threads alone; docs/reference/sharing.md
/// tells how near it comes for all together.
///
/// A claim that nothing bounds gets its even share, and counts for nothing.
std::vector<Grant> allocate(const NodeResources& node,
                            std::span<const Claim> claims,
                            const AllocationOptions& options);

/// Deals out what is left of the cache, evenly, as far as users allow: records
/// take more than their bytes, and a dataset may be larger than was seen.
void deal_out_cache(const NodeResources& node, std::span<const Claim> claims,
                    std::span<Grant> grants);

/// The values that an objective compares, one for each claim that something
/// bounds, in ascending order: worth * rate / rate alone, in [0, 1].
std::vector<double> normalised_rates(const NodeResources& node,
                                     std::span<const Claim> claims,
                                     std::span<const Grant> grants);

/// Which of two such lists is better.
bool is_better(Objective objective, std::span<const double> rates,
               std::span<const double> than);

/// (better - worse) / worse of the sum; or, for fairness, the most of any place
/// in the lists, from the least up to the first that loses: if the least cannot
/// gain, others may.
double relative_gain(Objective objective, std::span<const double> better,
                     std::span<const double> worse);

/// True if each claim that something bounds has what the floor promises, but
/// for a tenth of it, with these grants.
bool keeps_floor(const NodeResources& node, std::span<const Claim> claims,
                 std::span<const Grant> grants,
                 const AllocationOptions& options);

}  // namespace leat
