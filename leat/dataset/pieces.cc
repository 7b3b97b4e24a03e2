#include "leat/dataset/pieces.h"

#include <algorithm>
#include <cstddef>

#include "leat/base/check.h"
#include "leat/base/uint128.h"

namespace leat {
namespace {

/// The samples of one object, and its bytes that they take.
struct Run {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t low = 0;
  std::uint64_t high = 0;
};

/// The run that begins with a sample.
Run run_at(std::uint64_t begin, std::uint64_t samples, const SpanOf& span_of) {
  const SampleSpan first = span_of(begin);
  Run run{begin, begin + 1, first.begin, first.end};
  for (; run.end < samples; ++run.end) {
    const SampleSpan span = span_of(run.end);
    if (!span.has_bytes()) continue;
    if (span.object != first.object) break;
    run.low = std::min(run.low, span.begin);
    run.high = std::max(run.high, span.end);
  }
  return run;
}

/// Appends the first sample of each piece of a run. The samples of piece k are
/// those that begin in its k-th of the bytes.
void cut_run(const Run& run, const SpanOf& span_of, std::uint64_t piece_bytes,
             std::vector<std::uint64_t>& first_sample) {
  const std::uint64_t bytes = run.high - run.low;
  const std::uint64_t pieces = std::max<std::uint64_t>(bytes / piece_bytes, 1);
  first_sample.push_back(run.begin);
  std::uint64_t piece = 0;
  for (std::uint64_t id = run.begin; pieces > 1 && id < run.end; ++id) {
    const SampleSpan span = span_of(id);
    if (!span.has_bytes()) continue;
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

}  // namespace

void SampleSpan::add(const ByteRange& range) {
  if (range.is_missing()) return;
  const std::uint64_t last = range.offset + range.length_bytes;
  if (!has_bytes()) {
    *this = {range.object, range.offset, last};
  } else if (range.object == object) {
    begin = std::min(begin, range.offset);
    end = std::max(end, last);
  }
}

std::vector<std::uint64_t> cut_into_pieces(std::uint64_t samples,
                                           const SpanOf& span_of,
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

std::vector<std::uint64_t> pieces_of(const Catalogue& catalogue,
                                     std::uint64_t piece_bytes) {
  if (piece_bytes == kUsualPieceBytes) {
    std::vector<std::uint64_t> known = catalogue.pieces();
    if (!known.empty()) return known;
  }
  std::vector<std::size_t> fields;
  for (std::size_t field = 0; field < catalogue.fields().size(); ++field) {
    if (catalogue.fields()[field].kind == FieldKind::kBytes) {
      fields.push_back(field);
    }
  }
  return cut_into_pieces(
      catalogue.samples(),
      [&](std::uint64_t id) {
        SampleSpan span;
        for (const std::size_t field : fields) {
          span.add(catalogue.range(field, SampleId{id}));
        }
        return span;
      },
      piece_bytes);
}

}  // namespace leat
