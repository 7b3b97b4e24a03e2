#include <algorithm>
#include <cstddef>

#include "leat/base/check.h"
#include "leat/plan/order.h"

namespace leat {
namespace {

__extension__ using Uint128 = unsigned __int128;

bool has_bytes(const SampleSpan& span) {
  return span.object.value != ByteRange::kMissing;
}

/// The samples of one object, and its bytes that they take.
struct Run {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t low = 0;
  std::uint64_t high = 0;
};

/// The run that begins with a sample.
template <class SpanOf>
Run run_at(std::uint64_t begin, std::uint64_t samples, const SpanOf& span_of) {
  const SampleSpan first = span_of(begin);
  Run run{begin, begin + 1, first.begin, first.end};
  for (; run.end < samples; ++run.end) {
    const SampleSpan span = span_of(run.end);
    if (!has_bytes(span)) continue;
    if (span.object != first.object) break;
    run.low = std::min(run.low, span.begin);
    run.high = std::max(run.high, span.end);
  }
  return run;
}

/// Appends the first sample of each piece of a run. The samples of piece k are
/// those that begin in its k-th of the bytes.
template <class SpanOf>
void cut_run(const Run& run, const SpanOf& span_of, std::uint64_t piece_bytes,
             std::vector<std::uint64_t>& first_sample) {
  const std::uint64_t bytes = run.high - run.low;
  const std::uint64_t pieces = std::max<std::uint64_t>(bytes / piece_bytes, 1);
  first_sample.push_back(run.begin);
  std::uint64_t piece = 0;
  for (std::uint64_t id = run.begin; pieces > 1 && id < run.end; ++id) {
    const SampleSpan span = span_of(id);
    if (!has_bytes(span)) continue;
    // A sample without bytes may begin where the last piece ends.
    const auto here =
        std::min(static_cast<std::uint64_t>(Uint128{span.begin - run.low} *
                                            pieces / bytes),
                 pieces - 1);
    if (here <= piece) continue;
    piece = here;
    first_sample.push_back(id);
  }
}

/// The first sample of each piece, and the number of all. Each span is asked
/// for twice, so that none needs to be kept.
template <class SpanOf>
std::vector<std::uint64_t> cut_all(std::uint64_t samples, const SpanOf& span_of,
                                   std::uint64_t piece_bytes) {
  LEAT_CHECK(piece_bytes > 0);
  std::vector<std::uint64_t> first_sample;
  Run run;
  while (run.end < samples) {
    run = run_at(run.end, samples, span_of);
    cut_run(run, span_of, piece_bytes, first_sample);
  }
  first_sample.push_back(samples);
  return first_sample;
}

/// The bytes of one sample in the object that it belongs to.
SampleSpan span_in(const Catalogue& catalogue,
                   const std::vector<std::size_t>& fields, SampleId sample) {
  SampleSpan span;
  for (const std::size_t field : fields) {
    const ByteRange range = catalogue.range(field, sample);
    if (range.is_missing()) continue;
    const std::uint64_t end = range.offset + range.length_bytes;
    if (!has_bytes(span)) {
      span = {range.object, range.offset, end};
    } else if (range.object == span.object) {
      span.begin = std::min(span.begin, range.offset);
      span.end = std::max(span.end, end);
    }
  }
  return span;
}

}  // namespace

BlockMap BlockMap::build(const Catalogue& catalogue,
                         std::uint64_t piece_bytes) {
  std::vector<std::size_t> fields;
  for (std::size_t field = 0; field < catalogue.fields().size(); ++field) {
    if (catalogue.fields()[field].kind == FieldKind::kBytes) {
      fields.push_back(field);
    }
  }
  return BlockMap(cut_all(
      catalogue.samples(),
      [&](std::uint64_t id) {
        return span_in(catalogue, fields, SampleId{id});
      },
      piece_bytes));
}

BlockMap BlockMap::cut(std::span<const SampleSpan> samples,
                       std::uint64_t piece_bytes) {
  return BlockMap(cut_all(
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
  const auto after = std::upper_bound(first_sample_.begin(),
                                      first_sample_.end(), sample.value);
  return static_cast<std::uint64_t>(after - first_sample_.begin()) - 1;
}

}  // namespace leat
