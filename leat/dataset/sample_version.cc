#include "leat/dataset/sample_version.h"

#include <span>

namespace leat {

Hash128 sample_version(const Catalogue& catalogue, SampleId sample) {
  Hasher128 hasher;
  for (std::size_t field = 0; field < catalogue.fields().size(); ++field) {
    if (catalogue.fields()[field].kind != FieldKind::kBytes) continue;
    const ByteRange range = catalogue.range(field, sample);
    if (range.is_missing()) continue;
    const ObjectView object = catalogue.object(range.object);
    hasher.update(object.size_bytes);
    hasher.update(object.etag.size());
    hasher.update(std::as_bytes(std::span(object.etag)));
  }
  return hasher.digest();
}

}  // namespace leat
