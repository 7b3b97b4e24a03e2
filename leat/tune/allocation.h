// Divides a node among its jobs, by each job's properties.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "leat/tune/job_speed.h"

namespace leat {

/// The resources that jobs share. Threads and requests are whole numbers;
/// requests and bandwidth may be unbounded.
struct NodeResources {
  double threads = 1;
  double in_flight = kUnbounded;
  double bytes_per_second = kUnbounded;  ///< For all reads together.
  /// The same for all reads of each bucket, in the order of Claim::buckets.
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
  /// The rate that its ranks on other nodes reach: a higher rate here gains
  /// nothing, so no more is granted.
  double outside_ceiling = kUnbounded;
  /// The rate that it was seen to reach, with some room. Nothing beyond it is
  /// reserved, not even for the floor.
  double wanted = kUnbounded;
  /// For a claim without known bounds: the most of its even share of the
  /// bandwidth that is reserved for it.
  double used_bytes_per_second = kUnbounded;
  double most_threads = kUnbounded;      ///< The user's limit; at least 1.
  double most_in_flight = kUnbounded;    ///< The user's limit; at least 1.
  double most_cache_bytes = kUnbounded;  ///< The user's limit; may be 0.
  /// The limited buckets of the node that it reads, each once. All its reads
  /// count against each of them, since it is unknown how much comes from which.
  std::vector<std::size_t> buckets = {};
};

struct AllocationOptions {
  Objective objective = Objective::kThroughput;
  /// No job gets less than this part of its rate under an even split; in [0,
  /// 1].
  double floor = 0.5;
};

/// The bandwidth limits in bytes a second: the node's link, then each bucket.
std::vector<double> links_of(const NodeResources& node);
/// Calls visit(place) for each link that a claim reads through, by its place in
/// links_of().
template <class Visit>
void for_each_link(const Claim& claim, const Visit& visit) {
  visit(std::size_t{0});
  for (const std::size_t bucket : claim.buckets) visit(bucket + 1);
}
/// The narrowest of a claim's links, in bytes a second.
double narrowest_link(const NodeResources& node, const Claim& claim);

/// The rate of a job that has the node for itself.
double rate_alone(const NodeResources& node, const Claim& claim);

/// An equal part for each: whole threads and requests, at least one of each,
/// and for each link an equal part of its bandwidth for those that read through
/// it. If there are more jobs than threads, it grants more threads than exist.
std::vector<Grant> even_split(const NodeResources& node,
                              std::span<const Claim> claims);

/// The best shares found, in the order of `claims`; never worse than
/// even_split() by the objective. A resource that helps no job is not granted,
/// except for one spare thread each; remaining requests and bandwidth are
/// divided evenly. Exact for threads alone; docs/reference/sharing.md tells how
/// close it comes for all resources together.
///
/// A claim that nothing bounds gets its even share, and counts for nothing.
std::vector<Grant> allocate(const NodeResources& node,
                            std::span<const Claim> claims,
                            const AllocationOptions& options);

/// Divides the rest of the cache evenly, as far as users permit: records take
/// more room than their bytes, and a dataset may be larger than was seen.
void deal_out_cache(const NodeResources& node, std::span<const Claim> claims,
                    std::span<Grant> grants);

/// The values that an objective compares, one for each claim with known bounds,
/// in ascending order: worth * rate / rate alone, in [0, 1].
std::vector<double> normalised_rates(const NodeResources& node,
                                     std::span<const Claim> claims,
                                     std::span<const Grant> grants);

/// Which of two such lists is better.
bool is_better(Objective objective, std::span<const double> rates,
               std::span<const double> than);

/// How much `better` gains over `worse`, as a share of `worse`. For throughput,
/// compares the sums. For fairness, returns the largest gain at any place of
/// the lists, from the least rate up to the first that loses: if the least
/// cannot gain, others may.
double relative_gain(Objective objective, std::span<const double> better,
                     std::span<const double> worse);

/// True if these grants give each claim with known bounds what the floor
/// promises, less at most a tenth.
bool keeps_floor(const NodeResources& node, std::span<const Claim> claims,
                 std::span<const Grant> grants,
                 const AllocationOptions& options);

}  // namespace leat
