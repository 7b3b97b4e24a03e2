#include <algorithm>

#include "leat/base/check.h"
#include "leat/plan/order.h"

namespace leat {

BlockMap BlockMap::build(const Catalogue& catalogue,
                         std::uint64_t piece_bytes) {
  return BlockMap(pieces_of(catalogue, piece_bytes));
}

BlockMap BlockMap::cut(std::span<const SampleSpan> samples,
                       std::uint64_t piece_bytes) {
  return BlockMap(cut_into_pieces(
      samples.size(), [&](std::uint64_t id) { return samples[id]; },
      piece_bytes));
}

BlockMap BlockMap::part(std::uint64_t begin, std::uint64_t end) const {
  LEAT_CHECK(begin <= end && end <= samples());
  std::vector<std::uint64_t> first_sample;
  if (begin < end) first_sample.push_back(0);
  for (auto its = std::ranges::upper_bound(first_sample_, begin); *its < end;
       ++its) {
    first_sample.push_back(*its - begin);
  }
  first_sample.push_back(end - begin);
  return BlockMap(std::move(first_sample));
}

std::uint64_t BlockMap::block_of(SampleId sample) const {
  return finder_.find(sample.value, first_sample_);
}

}  // namespace leat
