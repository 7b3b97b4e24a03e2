#include <algorithm>
#include <cstddef>

#include "leat/plan/order.h"

namespace leat {
namespace {

/// The bytes of one sample in the object that it belongs to.
SampleSpan span_of(const Catalogue& catalogue, SampleId sample) {
  SampleSpan span;
  for (std::size_t field = 0; field < catalogue.fields().size(); ++field) {
    if (catalogue.fields()[field].kind != FieldKind::kBytes) continue;
    const ByteRange range = catalogue.range(field, sample);
    if (range.is_missing()) continue;
    const std::uint64_t end = range.offset + range.length_bytes;
    if (span.object.value == ByteRange::kMissing) {
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
  std::vector<SampleSpan> spans;
  spans.reserve(catalogue.samples());
  for (std::uint64_t id = 0; id < catalogue.samples(); ++id) {
    spans.push_back(span_of(catalogue, SampleId{id}));
  }
  return cut(spans, piece_bytes);
}

}  // namespace leat
