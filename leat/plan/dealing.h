// Decides which positions of a step go to which rank.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "leat/base/ids.h"
#include "leat/base/result.h"
#include "leat/plan/order.h"
#include "leat/plan/steps.h"

namespace leat {

/// Whether and how a step's samples are dealt to the caches that hold them.
/// Every step keeps its samples and every rank its share of them, so the sum of
/// the gradients is unchanged. State that ranks do not share no longer comes
/// from samples drawn alike for all: the statistics of an unsynchronised
/// BatchNorm, or random numbers drawn by rank.
enum class Locality : std::uint8_t {
  kNone,     ///< Rank r takes the r-th run of the step.
  kSticky,   ///< To the home rank of a sample: positions_at_home().
  kRemap,    ///< To the rank that holds it in the simulation: HolderDealing.
  kBalance,  ///< As kRemap, but a sample that nobody holds goes to the rank
             ///< that will hold least of the step that reads it next, so that
             ///< all load evenly.
};

/// Whether it depends on what caches hold in the simulation.
constexpr bool deals_to_holders(Locality locality) {
  return locality == Locality::kRemap || locality == Locality::kBalance;
}

/// The name that users give: "none", "sticky", "remap" or "balance".
std::string_view to_string(Locality locality);
/// All names, in the order of the values.
std::span<const std::string_view> locality_names();
/// Errors: kInvalidArgument: there is no such name
Result<Locality> parse_locality(std::string_view name);

/// A sample's home rank, the same in every epoch: drawn uniformly, from its
/// number alone. REQUIRES: world_size > 0.
std::uint32_t home_of(SampleId sample, std::uint32_t world_size);

/// The home rank of a sample of an order.
using HomeOf = std::function<std::uint32_t(SampleId)>;

/// Deals a step's samples to their home ranks, as long as each rank gets as
/// many as Steps says; the others fill up the ranks in order. Every step keeps
/// its samples, and each goes to one rank. An incomplete last step is dealt as
/// in Steps.
///
/// Depends only on the step, the order and the world size, so all ranks agree
/// without messages, and a state need not store it. State that ranks do not
/// share (a BatchNorm's statistics) no longer comes from samples drawn alike
/// for all ranks.
///
/// The positions of `rank`, rising. O(global batch). `first_sample` is what the
/// dataset has in front of the part that steps and order are of.
/// REQUIRES: step < steps.count().
std::vector<std::uint64_t> positions_at_home(const Steps& steps,
                                             std::uint64_t step,
                                             const EpochOrder& order,
                                             std::uint64_t first_sample = 0);
/// The same with homes of another kind.
std::vector<std::uint64_t> positions_at_homes(const Steps& steps,
                                              std::uint64_t step,
                                              const EpochOrder& order,
                                              const HomeOf& home_of);

}  // namespace leat
