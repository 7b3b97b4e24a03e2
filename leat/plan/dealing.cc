#include "leat/plan/dealing.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "leat/base/errors.h"
#include "leat/base/hash.h"

namespace leat {
namespace {

constexpr std::array<std::string_view, 4> kLocalityNames = {"none", "sticky",
                                                            "remap", "balance"};

std::vector<std::uint64_t> run_of(const StepSlice& slice) {
  std::vector<std::uint64_t> positions(slice.size());
  std::iota(positions.begin(), positions.end(), slice.begin);
  return positions;
}

}  // namespace

std::string_view to_string(Locality locality) {
  return kLocalityNames[static_cast<std::size_t>(locality)];
}

std::span<const std::string_view> locality_names() { return kLocalityNames; }

Result<Locality> parse_locality(std::string_view name) {
  const auto found = std::ranges::find(kLocalityNames, name);
  if (found != kLocalityNames.end()) {
    return static_cast<Locality>(found - kLocalityNames.begin());
  }
  return invalid("locality=\"{}\"; it is one of {}", name,
                 fmt::join(kLocalityNames, ", "));
}

std::uint32_t home_of(SampleId sample, std::uint32_t world_size) {
  return static_cast<std::uint32_t>(mix64(sample.value) % world_size);
}

std::vector<std::uint64_t> positions_at_home(const Steps& steps,
                                             std::uint64_t step,
                                             const EpochOrder& order,
                                             std::uint64_t first_sample) {
  const std::uint32_t world_size = steps.rank().world_size;
  return positions_at_homes(steps, step, order, [&](SampleId sample) {
    return home_of({first_sample + sample.value}, world_size);
  });
}

std::vector<std::uint64_t> positions_at_homes(const Steps& steps,
                                              std::uint64_t step,
                                              const EpochOrder& order,
                                              const HomeOf& home_of) {
  const StepSlice all = steps.all_ranks(step);
  const Rank rank = steps.rank();
  const std::uint64_t share = all.size() / rank.world_size;
  if (!steps.is_whole(step)) return run_of(steps.slice(step));
  std::vector<std::uint64_t> dealt(rank.world_size);
  std::vector<std::uint64_t> mine;
  std::vector<std::uint64_t> left;
  mine.reserve(share);
  for (std::uint64_t p = all.begin; p < all.end; ++p) {
    const std::uint32_t home = home_of(order.at(p));
    if (dealt[home] == share) {
      left.push_back(p);
      continue;
    }
    ++dealt[home];
    if (home == rank.rank) mine.push_back(p);
  }
  std::uint32_t next = 0;
  for (const std::uint64_t p : left) {
    while (dealt[next] == share) ++next;
    ++dealt[next];
    if (next == rank.rank) mine.push_back(p);
  }
  std::ranges::sort(mine);
  return mine;
}

}  // namespace leat
