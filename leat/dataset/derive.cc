#include "leat/dataset/derive.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "leat/base/check.h"
#include "leat/base/hash.h"
#include "leat/dataset/catalogue_writer.h"

namespace leat {
namespace {

constexpr std::uint32_t kNotTaken = ByteRange::kMissing;

/// Copies samples of one catalogue to the end of another's writer.
class Copier {
 public:
  Copier(const Catalogue& from, CatalogueWriter& to, std::string key_prefix,
         bool keeps_etags)
      : from_(from),
        to_(to),
        key_prefix_(std::move(key_prefix)),
        keeps_etags_(keeps_etags),
        taken_(from.objects(), kNotTaken) {}

  void copy(SampleId sample) {
    // Objects first: a sample that is called as its object stores no key.
    std::vector<ByteRange> ranges = ranges_of(sample);
    to_.add_sample(from_.key(sample));
    for (std::size_t field = 0; field < ranges.size(); ++field) {
      copy_field(field, sample, ranges[field]);
    }
  }

 private:
  std::vector<ByteRange> ranges_of(SampleId sample) {
    const std::vector<FieldSpec>& fields = from_.fields();
    std::vector<ByteRange> ranges(fields.size());
    for (std::size_t field = 0; field < fields.size(); ++field) {
      if (fields[field].kind != FieldKind::kBytes) continue;
      ranges[field] = from_.range(field, sample);
      if (ranges[field].is_missing()) continue;
      ranges[field].object = take(ranges[field].object);
    }
    return ranges;
  }

  ObjectIndex take(ObjectIndex old) {
    std::uint32_t& taken = taken_[old.value];
    if (taken == kNotTaken) {
      const ObjectView view = from_.object(old);
      const std::string key = key_prefix_ + std::string(view.key);
      taken =
          to_.add_object({.key = key,
                          .etag = keeps_etags_ ? view.etag : std::string_view(),
                          .size_bytes = view.size_bytes})
              .value;
    }
    return {taken};
  }

  void copy_field(std::size_t field, SampleId sample, const ByteRange& range) {
    switch (from_.fields()[field].kind) {
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
  const std::string key_prefix_;
  const bool keeps_etags_;
  std::vector<std::uint32_t> taken_;  // By old object: the new one.
};

std::string names_of(const std::vector<FieldSpec>& fields) {
  std::string names;
  for (const FieldSpec& field : fields) {
    if (!names.empty()) names += ", ";
    names += field.name;
  }
  return names;
}

Result<void> check_alike(const Catalogue& first, const Catalogue& other,
                         std::size_t part) {
  if (first.fields() != other.fields()) {
    return Error(
        ErrorCode::kInvalidArgument,
        fmt::format("cannot join part {}: its fields are ({}), those of the "
                    "first ({}), and names, kinds and order have to agree",
                    part, names_of(other.fields()), names_of(first.fields())));
  }
  if (first.classes() != other.classes()) {
    return Error(
        ErrorCode::kInvalidArgument,
        fmt::format("cannot join part {}: it has {} classes and the first has "
                    "{}, or they are called otherwise, so that a label would "
                    "not mean the same; give both the same classes=",
                    part, other.classes().size(), first.classes().size()));
  }
  return {};
}

}  // namespace

Result<Buffer> select_samples(const Catalogue& from,
                              std::span<const SampleId> samples) {
  CatalogueWriter writer(from.layout(), from.etag_kind());
  writer.set_classes(from.classes());
  for (const FieldSpec& field : from.fields()) writer.add_field(field);
  Copier copier(from, writer, "", true);
  for (const SampleId sample : samples) {
    LEAT_CHECK(sample.value < from.samples());
    copier.copy(sample);
  }
  return std::move(writer).finish();
}

std::string joined_prefix(std::size_t part) {
  return std::to_string(part) + "/";
}

Result<Buffer> join_catalogues(
    std::span<const std::shared_ptr<const Catalogue>> parts) {
  LEAT_CHECK(!parts.empty());
  const Catalogue& first = *parts[0];
  bool has_only_shards = true;
  bool has_same_etags = true;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    LEAT_TRY_VOID(check_alike(first, *parts[i], i));
    has_only_shards &= parts[i]->layout() == Layout::kShards;
    has_same_etags &= parts[i]->etag_kind() == first.etag_kind();
  }
  CatalogueWriter writer(has_only_shards ? Layout::kShards : Layout::kObjects,
                         has_same_etags ? first.etag_kind() : EtagKind::kNone);
  writer.set_classes(first.classes());
  for (const FieldSpec& field : first.fields()) writer.add_field(field);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    Copier copier(*parts[i], writer, joined_prefix(i), has_same_etags);
    for (std::uint64_t sample = 0; sample < parts[i]->samples(); ++sample) {
      copier.copy({sample});
    }
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
