#include <algorithm>
#include <cstddef>

#include "leat/base/check.h"
#include "leat/plan/order.h"

namespace leat {
namespace {

__extension__ using Uint128 = unsigned __int128;

/// Appends the first sample of each piece of one object. The samples of piece k
/// are those that begin in its k-th of the object's bytes.
void cut_object(std::span<const SampleSpan> run, std::uint64_t first,
                std::uint64_t piece_bytes,
                std::vector<std::uint64_t>& first_sample) {
  std::uint64_t low = run.front().begin;
  std::uint64_t high = run.front().end;
  for (const SampleSpan& sample : run) {
    if (sample.object.value == ByteRange::kMissing) continue;
    low = std::min(low, sample.begin);
    high = std::max(high, sample.end);
  }
  const std::uint64_t bytes = high - low;
  const std::uint64_t pieces = std::max<std::uint64_t>(bytes / piece_bytes, 1);
  first_sample.push_back(first);
  std::uint64_t piece = 0;
  for (std::size_t i = 0; i < run.size(); ++i) {
    if (run[i].object.value == ByteRange::kMissing || bytes == 0) continue;
    // A sample without bytes may begin where the last piece ends.
    const auto here =
        std::min(static_cast<std::uint64_t>(Uint128{run[i].begin - low} *
                                            pieces / bytes),
                 pieces - 1);
    if (here <= piece) continue;
    piece = here;
    first_sample.push_back(first + i);
  }
}

}  // namespace

BlockMap BlockMap::cut(std::span<const SampleSpan> samples,
                       std::uint64_t piece_bytes) {
  LEAT_CHECK(piece_bytes > 0);
  std::vector<std::uint64_t> first_sample;
  std::size_t begin = 0;
  while (begin < samples.size()) {
    std::size_t end = begin + 1;
    while (end < samples.size() &&
           (samples[end].object == samples[begin].object ||
            samples[end].object.value == ByteRange::kMissing)) {
      ++end;
    }
    cut_object(samples.subspan(begin, end - begin), begin, piece_bytes,
               first_sample);
    begin = end;
  }
  first_sample.push_back(samples.size());
  return BlockMap(std::move(first_sample));
}

std::uint64_t BlockMap::block_of(SampleId sample) const {
  const auto after = std::upper_bound(first_sample_.begin(),
                                      first_sample_.end(), sample.value);
  return static_cast<std::uint64_t>(after - first_sample_.begin()) - 1;
}

}  // namespace leat
