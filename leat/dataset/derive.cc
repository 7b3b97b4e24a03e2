#include "leat/dataset/derive.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "leat/base/check.h"
#include "leat/base/hash.h"
#include "leat/dataset/catalogue_writer.h"
#include "leat/dataset/merge_classes.h"

namespace leat {
namespace {

constexpr std::uint32_t kNotTaken = ByteRange::kMissing;

/// How the samples of one catalogue become those of another.
struct CopyRules {
  /// The number of places before this catalogue's first in the joined one;
  /// nullopt: keys stay as they are.
  std::optional<std::size_t> first_place = std::nullopt;
  /// Its keys already name the place that they belong to.
  bool is_joined = false;
  bool keeps_etags = true;
  /// By new field: the old one.
  std::vector<std::size_t> fields = {};
  /// By old label: the new one. Empty: labels stay.
  std::vector<std::int64_t> labels = {};
};

/// The key of an object in the joined catalogue, after `places` other places.
std::string moved_key(std::string_view key, std::size_t places) {
  std::size_t place = 0;
  const auto [end, failed] =
      std::from_chars(key.data(), key.data() + key.size(), place);
  const auto digits = static_cast<std::size_t>(end - key.data());
  // The key stays as it is; no part has it, so reading it fails.
  if (failed != std::errc() || !key.substr(digits).starts_with('/')) {
    return std::string(key);
  }
  return joined_prefix(places + place) + std::string(key.substr(digits + 1));
}

/// Appends samples of one catalogue to another's writer.
class Copier {
 public:
  Copier(const Catalogue& from, CatalogueWriter& to, CopyRules rules)
      : from_(from),
        to_(to),
        rules_(std::move(rules)),
        label_(rules_.labels.empty() ? to.fields().size() : label_of(to)),
        taken_(from.objects(), kNotTaken) {}

  Result<void> copy(SampleId sample) {
    // Objects first: a sample named like its object stores no key.
    const std::vector<ByteRange> ranges = ranges_of(sample);
    to_.add_sample(from_.key(sample));
    for (std::size_t field = 0; field < ranges.size(); ++field) {
      if (field == label_) {
        LEAT_TRY_VOID(copy_label(field, sample));
      } else {
        copy_field(field, sample, ranges[field]);
      }
    }
    return {};
  }

 private:
  static std::size_t label_of(const CatalogueWriter& to) {
    const FieldSpec label{"label", FieldKind::kInt64};
    return static_cast<std::size_t>(std::ranges::find(to.fields(), label) -
                                    to.fields().begin());
  }

  std::size_t old_field(std::size_t field) const {
    return rules_.fields.empty() ? field : rules_.fields[field];
  }

  std::vector<ByteRange> ranges_of(SampleId sample) {
    const std::vector<FieldSpec>& fields = to_.fields();
    // A field that the joined catalogue adds is not theirs.
    std::vector<ByteRange> ranges(rules_.fields.empty() ? fields.size()
                                                        : rules_.fields.size());
    for (std::size_t field = 0; field < ranges.size(); ++field) {
      if (fields[field].kind != FieldKind::kBytes) continue;
      ranges[field] = from_.range(old_field(field), sample);
      if (ranges[field].is_missing()) continue;
      ranges[field].object = take(ranges[field].object);
    }
    return ranges;
  }

  std::string new_key(std::string_view key) const {
    if (!rules_.first_place) return std::string(key);
    if (rules_.is_joined) return moved_key(key, *rules_.first_place);
    return joined_prefix(*rules_.first_place) + std::string(key);
  }

  ObjectIndex take(ObjectIndex old) {
    std::uint32_t& taken = taken_[old.value];
    if (taken == kNotTaken) {
      const ObjectView view = from_.object(old);
      taken = to_.add_object({.key = new_key(view.key),
                              .etag = rules_.keeps_etags ? view.etag
                                                         : std::string_view(),
                              .size_bytes = view.size_bytes})
                  .value;
    }
    return {taken};
  }

  Result<void> copy_label(std::size_t field, SampleId sample) {
    const std::int64_t old = from_.int64(old_field(field), sample);
    const auto known = static_cast<std::int64_t>(rules_.labels.size());
    if (old >= 0 && old < known) {
      to_.set_int64(field, rules_.labels[static_cast<std::size_t>(old)]);
      return {};
    }
    return Error(
        ErrorCode::kInvalidArgument,
        fmt::format("'{}' has the label {}, and its dataset {} classes, so it "
                    "cannot be renumbered by name; leave it out with filter()",
                    from_.key(sample), old, known));
  }

  void copy_field(std::size_t field, SampleId sample, const ByteRange& range) {
    const std::size_t old = old_field(field);
    switch (to_.fields()[field].kind) {
      case FieldKind::kBytes:
        return to_.set_range(field, range);
      case FieldKind::kInt64:
        return to_.set_int64(field, from_.int64(old, sample));
      case FieldKind::kFloat64:
        return to_.set_float64(field, from_.float64(old, sample));
      case FieldKind::kString:
        return to_.set_string(field, from_.string(old, sample));
    }
  }

  const Catalogue& from_;
  CatalogueWriter& to_;
  const CopyRules rules_;
  const std::size_t label_;  // The field that is renumbered; none: past all.
  std::vector<std::uint32_t> taken_;  // By old object: the new one.
};

/// "image: bytes, label: int64", sorted by name.
std::string names_of(std::vector<FieldSpec> fields) {
  std::ranges::sort(fields, {}, &FieldSpec::name);
  std::string names;
  for (const FieldSpec& field : fields) {
    if (!names.empty()) names += ", ";
    names += fmt::format("{}: {}", field.name, to_string(field.kind));
  }
  return names;
}

/// The index in `other` of each field of `first`.
Result<std::vector<std::size_t>> fields_alike(const Catalogue& first,
                                              const Catalogue& other,
                                              std::size_t part) {
  std::vector<std::size_t> places;
  bool are_alike = first.fields().size() == other.fields().size();
  for (const FieldSpec& field : first.fields()) {
    const auto found = std::ranges::find(other.fields(), field);
    are_alike &= found != other.fields().end();
    places.push_back(static_cast<std::size_t>(found - other.fields().begin()));
  }
  if (are_alike) return places;
  return Error(
      ErrorCode::kInvalidArgument,
      fmt::format("cannot join part {}: its fields are ({}), those of the "
                  "first ({}), and names and kinds have to agree; fields= and "
                  "columns= of from_manifest name the fields of a table",
                  part, names_of(other.fields()), names_of(first.fields())));
}

}  // namespace

Result<Buffer> select_samples(const Catalogue& from,
                              std::span<const SampleId> samples) {
  CatalogueWriter writer(from.layout(), from.etag_kind());
  writer.set_classes(from.classes());
  for (const FieldSpec& field : from.fields()) writer.add_field(field);
  Copier copier(from, writer, {});
  for (const SampleId sample : samples) {
    LEAT_CHECK(sample.value < from.samples());
    LEAT_TRY_VOID(copier.copy(sample));
  }
  return std::move(writer).finish();
}

std::string joined_prefix(std::size_t part) {
  return std::to_string(part) + "/";
}

Result<Buffer> join_catalogues(
    std::span<const std::shared_ptr<const Catalogue>> parts,
    std::span<const std::size_t> places, std::string_view part_field) {
  LEAT_CHECK(!parts.empty());
  LEAT_CHECK(places.empty() || places.size() == parts.size());
  const Catalogue& first = *parts[0];
  const auto is_shards = [](const auto& part) {
    return part->layout() == Layout::kShards;
  };
  const bool keeps_etags = std::ranges::all_of(parts, [&](const auto& part) {
    return part->etag_kind() == first.etag_kind();
  });
  std::vector<std::vector<std::size_t>> fields(parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    LEAT_TRY(fields[i], fields_alike(first, *parts[i], i));
  }
  LEAT_TRY(MergedClasses classes, merge_classes(parts));
  CatalogueWriter writer(std::ranges::all_of(parts, is_shards)
                             ? Layout::kShards
                             : Layout::kObjects,
                         keeps_etags ? first.etag_kind() : EtagKind::kNone);
  writer.set_classes(classes.names);
  for (const FieldSpec& field : first.fields()) writer.add_field(field);
  const std::size_t part_at = first.fields().size();
  if (!part_field.empty()) {
    writer.add_field({std::string(part_field), FieldKind::kInt64});
  }
  std::size_t place = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    CopyRules rules{.first_place = place,
                    .is_joined = !places.empty() && places[i] != 0,
                    .keeps_etags = keeps_etags,
                    .fields = std::move(fields[i]),
                    .labels = std::move(classes.numbers[i])};
    place += rules.is_joined ? places[i] : 1;
    Copier copier(*parts[i], writer, std::move(rules));
    for (std::uint64_t sample = 0; sample < parts[i]->samples(); ++sample) {
      LEAT_TRY_VOID(copier.copy({sample}));
      if (part_field.empty()) continue;
      writer.set_int64(part_at, static_cast<std::int64_t>(i));
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
