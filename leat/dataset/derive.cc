#include "leat/dataset/derive.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "leat/base/check.h"
#include "leat/base/errors.h"
#include "leat/base/hash.h"
#include "leat/dataset/catalogue_writer.h"

namespace leat {
namespace {

constexpr std::uint32_t kNotTaken = ByteRange::kMissing;

/// Appends samples of a catalogue to a writer that has the same fields.
class Copier {
 public:
  /// Without `checksum` none are kept.
  Copier(const Catalogue& from, CatalogueWriter& to, ChecksumOf checksum)
      : from_(from),
        to_(to),
        checksum_(std::move(checksum)),
        taken_(from.objects(), kNotTaken) {}

  /// The writer has all objects already, under the numbers they had.
  void keep_numbers_of_objects() {
    std::iota(taken_.begin(), taken_.end(), std::uint32_t{0});
  }

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
        to_.set_range(field, range);
        if (checksum_) to_.set_checksum(field, checksum_(field, sample));
        return;
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
  const ChecksumOf checksum_;
  std::vector<std::uint32_t> taken_;  // By old object: the new one.
};

/// A writer for samples of `from`, with checksums if any are given.
CatalogueWriter writer_like(const Catalogue& from, const ChecksumOf& checksum) {
  CatalogueWriter writer(from.layout(), from.etag_kind());
  writer.set_classes(from.classes());
  if (checksum) writer.keep_checksums();
  for (const FieldSpec& field : from.fields()) writer.add_field(field);
  return writer;
}

/// Those that the catalogue has; empty if it keeps none.
ChecksumOf checksums_of(const Catalogue& from) {
  if (!from.has_checksums()) return {};
  return [&from](std::size_t field, SampleId sample) {
    return from.checksum(field, sample).value_or(0);
  };
}

}  // namespace

Result<Buffer> select_samples(const Catalogue& from,
                              std::span<const SampleId> samples) {
  ChecksumOf checksum = checksums_of(from);
  CatalogueWriter writer = writer_like(from, checksum);
  Copier copier(from, writer, std::move(checksum));
  for (const SampleId sample : samples) {
    LEAT_CHECK(sample.value < from.samples());
    copier.copy(sample);
  }
  return std::move(writer).finish();
}

Result<Buffer> with_classes(const Catalogue& from,
                            const std::vector<std::string>& classes) {
  const auto& fields = from.fields();
  const auto label = static_cast<std::size_t>(
      std::ranges::find(fields, FieldSpec{"label", FieldKind::kInt64}) -
      fields.begin());
  ChecksumOf checksum = checksums_of(from);
  CatalogueWriter writer = writer_like(from, checksum);
  writer.set_classes(classes);
  Copier copier(from, writer, std::move(checksum));
  for (SampleId sample; sample.value < from.samples(); ++sample.value) {
    copier.copy(sample);
    if (label == fields.size()) continue;
    const std::int64_t old = from.int64(label, sample);
    if (old < 0 || old >= std::ssize(from.classes())) {
      return invalid("'{}' has the label {}, which is no class's",
                     from.key(sample), old);
    }
    const std::string& name = from.classes()[static_cast<std::size_t>(old)];
    const auto found = std::ranges::find(classes, name);
    if (found == classes.end()) {
      return invalid("'{}' is of the class '{}', which is not one of the {}",
                     from.key(sample), name, classes.size());
    }
    writer.set_int64(label, found - classes.begin());
  }
  return std::move(writer).finish();
}

Result<Buffer> with_checksums(const Catalogue& from,
                              const ChecksumOf& checksum) {
  CatalogueWriter writer = writer_like(from, checksum);
  for (std::uint64_t i = 0; i < from.objects(); ++i) {
    writer.add_object(from.object({static_cast<std::uint32_t>(i)}));
  }
  Copier copier(from, writer, checksum);
  copier.keep_numbers_of_objects();
  for (SampleId sample; sample.value < from.samples(); ++sample.value) {
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
