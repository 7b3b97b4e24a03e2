#include "leat/dataset/derive.h"

#include <algorithm>
#include <cmath>

#include "leat/base/check.h"
#include "leat/base/hash.h"
#include "leat/dataset/catalogue_writer.h"

namespace leat {
namespace {

constexpr std::uint32_t kNotTaken = ByteRange::kMissing;

/// Appends samples of a catalogue to a writer that has the same fields.
class Copier {
 public:
  Copier(const Catalogue& from, CatalogueWriter& to)
      : from_(from), to_(to), taken_(from.objects(), kNotTaken) {}

  void copy(SampleId sample) {
    // Objects first: a sample named like its object stores no key.
    const std::vector<ByteRange> ranges = ranges_of(sample);
    to_.add_sample(from_.key(sample));
    for (std::size_t field = 0; field < ranges.size(); ++field) {
      copy_field(field, sample, ranges[field]);
    }
  }

 private:
  std::vector<ByteRange> ranges_of(SampleId sample) {
    const std::vector<FieldSpec>& fields = to_.fields();
    std::vector<ByteRange> ranges(fields.size());
    for (std::size_t field = 0; field < ranges.size(); ++field) {
      if (fields[field].kind != FieldKind::kBytes) continue;
      ranges[field] = from_.range(field, sample);
      if (ranges[field].is_missing()) continue;
      ranges[field].object = take(ranges[field].object);
    }
    return ranges;
  }

  ObjectIndex take(ObjectIndex old) {
    std::uint32_t& taken = taken_[old.value];
    if (taken == kNotTaken) taken = to_.add_object(from_.object(old)).value;
    return {taken};
  }

  void copy_field(std::size_t field, SampleId sample, const ByteRange& range) {
    switch (to_.fields()[field].kind) {
      case FieldKind::kBytes:
        return to_.set_range(field, range);
      case FieldKind::kInt64:
        return to_.set_int64(field, from_.int64(field, sample));
      case FieldKind::kFloat64:
        return to_.set_float64(field, from_.float64(field, sample));
      case FieldKind::kString:
        return to_.set_string(field, from_.string(field, sample));
    }
  }

  const Catalogue& from_;
  CatalogueWriter& to_;
  std::vector<std::uint32_t> taken_;  // By old object: the new one.
};

}  // namespace

Result<Buffer> select_samples(const Catalogue& from,
                              std::span<const SampleId> samples) {
  CatalogueWriter writer(from.layout(), from.etag_kind());
  writer.set_classes(from.classes());
  for (const FieldSpec& field : from.fields()) writer.add_field(field);
  Copier copier(from, writer);
  for (const SampleId sample : samples) {
    LEAT_CHECK(sample.value < from.samples());
    copier.copy(sample);
  }
  return std::move(writer).finish();
}

std::size_t share_of(std::string_view name, std::uint64_t seed,
                     std::span<const double> ends) {
  LEAT_CHECK(!ends.empty());
  const std::uint64_t hash = xxh3_128(std::as_bytes(std::span(name)), seed).low;
  const double at = std::ldexp(static_cast<double>(hash >> 11), -53);
  const auto share = std::upper_bound(ends.begin(), ends.end(), at);
  return std::min(static_cast<std::size_t>(share - ends.begin()),
                  ends.size() - 1);
}

}  // namespace leat
