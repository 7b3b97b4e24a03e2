#include "leat/plan/run_finder.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "leat/base/check.h"

namespace leat {

RunFinder::RunFinder(std::span<const std::uint64_t> starts) {
  LEAT_CHECK(!starts.empty() &&
             starts.size() <= std::numeric_limits<std::uint32_t>::max());
  const std::uint64_t end = starts.back();
  if (end == 0) return;
  // One to two entries for each run.
  shift_ = std::bit_width(end / starts.size());
  if (shift_ > 0) --shift_;
  const std::uint64_t entries = ((end - 1) >> shift_) + 1;
  run_at_.reserve(entries + 1);
  std::uint32_t run = 0;
  for (std::uint64_t entry = 0; entry < entries; ++entry) {
    while (starts[run + 1] <= (entry << shift_)) ++run;
    run_at_.push_back(run);
  }
  run_at_.push_back(static_cast<std::uint32_t>(starts.size() - 2));
}

std::uint64_t RunFinder::search(std::uint64_t number,
                                std::span<const std::uint64_t> starts,
                                std::uint64_t first, std::uint64_t last) {
  const auto after = std::upper_bound(
      starts.begin() + static_cast<std::ptrdiff_t>(first) + 1,
      starts.begin() + static_cast<std::ptrdiff_t>(last) + 1, number);
  return static_cast<std::uint64_t>(after - starts.begin()) - 1;
}

}  // namespace leat
