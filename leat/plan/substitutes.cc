#include "leat/plan/substitutes.h"

#include "leat/base/hash.h"
#include "leat/base/uint128.h"

namespace leat {
namespace {

// Apart from the draws of orders, which have the same seed.
constexpr std::uint64_t kSalt = 0x5b5d1e0c7a3f2e91ULL;

}  // namespace

Substitutes::Substitutes(std::uint64_t seed, std::uint64_t epoch,
                         std::uint64_t first_sample, std::uint64_t position)
    : key_(mix64(mix64(mix64(seed ^ kSalt) + mix64(epoch)) ^
                 mix64(first_sample + position))),
      position_(position) {}

std::optional<SampleId> Substitutes::next(const EpochOrder& order) {
  const std::uint64_t first = order.first();
  const std::uint64_t known = order.size() - first;
  // Padding repeats the positions from the beginning.
  const SampleId replaced = order.at(position_ % order.size());
  const std::uint32_t source = order.source_of(replaced);
  while (draws_ < kMostDraws) {
    const Uint128 wide = Uint128{mix64(key_ ^ mix64(++draws_))} * known;
    const SampleId drawn =
        order.at(first + static_cast<std::uint64_t>(wide >> 64));
    if (order.source_of(drawn) == source) return drawn;
  }
  return std::nullopt;
}

}  // namespace leat
