// Which positions of a step go to which rank.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "leat/base/ids.h"
#include "leat/base/result.h"
#include "leat/plan/order.h"
#include "leat/plan/steps.h"

namespace leat {

/// Whether the samples of a step are dealt so that caches meet them again.
/// Every step keeps its samples and every rank its number of them, so the sum
/// of the gradients is the same. State that ranks do not share no longer comes
/// from samples drawn alike for all: the statistics of a BatchNorm that is not
/// synchronised, random numbers drawn by rank.
enum class Locality : std::uint8_t {
  kNone,     ///< Rank r takes the r-th run of the step.
  kSticky,   ///< To the rank that a sample is at home on: positions_at_home().
  kRemap,    ///< To the rank that holds it, as simulated: HolderDealing.
  kBalance,  ///< So too; and what nobody holds goes to the rank that will hold
             ///< least of the step that reads it next, so that all load evenly.
};

/// Whether it goes by what caches hold, as simulated.
constexpr bool deals_to_holders(Locality locality) {
  return locality == Locality::kRemap || locality == Locality::kBalance;
}

/// The name that users give: "none", "sticky", "remap" or "balance".
std::string_view to_string(Locality locality);
/// All of them, in the order of the values.
std::span<const std::string_view> locality_names();
/// Errors: kInvalidArgument: it is none
Result<Locality> parse_locality(std::string_view name);

/// The rank that a sample is at home on, in every epoch: evenly drawn from its
/// number alone. REQUIRES: world_size > 0.
std::uint32_t home_of(SampleId sample, std::uint32_t world_size);

/// Deals a step's samples to the ranks where they are at home, as far as each
/// rank still gets as many as Steps says; the rest fills up in order. Every
/// step keeps its samples, and each goes to one rank. The last step of an
/// epoch, if it is not whole, is dealt as Steps does.
///
/// A function of the step, the order and the world size: so all ranks agree
/// without a message, and a state needs to keep nothing of it. State that a
/// rank does not share (the statistics of a BatchNorm) no longer comes from
/// samples drawn alike for all ranks.
///
/// The positions of `rank`, rising. O(global batch). `first_sample` is what the
/// dataset has in front of the part that steps and order are of.
/// REQUIRES: step < steps.count().
std::vector<std::uint64_t> positions_at_home(const Steps& steps,
                                             std::uint64_t step,
                                             const EpochOrder& order,
                                             std::uint64_t first_sample = 0);

}  // namespace leat
