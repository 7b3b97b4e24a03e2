#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

#include "leat/base/check.h"
#include "leat/base/errors.h"
#include "leat/base/hash.h"
#include "leat/dataset/catalogue_tables.h"
#include "leat/dataset/catalogue_writer.h"
#include "leat/dataset/derive.h"
#include "leat/dataset/merge_classes.h"

namespace leat {
namespace {

using Parts = std::span<const std::shared_ptr<const Catalogue>>;

constexpr std::string_view kLabel = "label";

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
  return invalid(
      "cannot join part {}: its fields are ({}), those of the first ({}), and "
      "names and kinds have to agree; fields= and columns= of from_manifest "
      "name the fields of a table",
      part, names_of(other.fields()), names_of(first.fields()));
}

/// The keys of all objects, one part after the other.
class ObjectKeys {
 public:
  /// `places` other places come before it; `is_joined`: its keys already name
  /// the place that they belong to.
  void add(const Catalogue& part, std::size_t places, bool is_joined) {
    const std::string prefix = joined_prefix(places);
    for (std::uint64_t i = 0; i < part.objects(); ++i) {
      const std::string_view key =
          part.object({static_cast<std::uint32_t>(i)}).key;
      pool_.add(is_joined ? moved_key(key, places) : prefix + std::string(key));
    }
  }
  std::uint64_t count() const { return pool_.ends.size(); }

  /// A view of this, which has to stay.
  TextColumn column() const {
    return {.ends = std::as_bytes(std::span(pool_.ends)).data(),
            .width = 8,
            .text = pool_.text.data(),
            .text_bytes = pool_.text.size()};
  }

 private:
  TextPool pool_;
};

Result<void> check_labels(const CataloguePart& part, std::size_t label) {
  const auto known = static_cast<std::int64_t>(part.labels.size());
  if (known == 0 || label == CatalogueTables::kNoField) return {};
  for (SampleId sample; sample.value < part.from->samples(); ++sample.value) {
    const std::int64_t old = part.from->int64(part.fields[label], sample);
    if (old >= 0 && old < known) continue;
    return invalid(
        "'{}' has the label {}, and its dataset {} classes, so it cannot be "
        "renumbered by name; leave it out with filter()",
        part.from->key(sample), old, known);
  }
  return {};
}

/// A function of what the parts' digests are of, and of how they are joined.
Hash128 digest_of(const CatalogueTables& tables,
                  std::span<const std::size_t> places) {
  std::string text =
      fmt::format("joined {} {}\n", tables.layout == Layout::kShards,
                  tables.part_field == CatalogueTables::kNoField
                      ? ""
                      : tables.fields[tables.part_field].name);
  for (std::size_t i = 0; i < tables.parts.size(); ++i) {
    text += fmt::format("{} {}\n", tables.parts[i].from->digest().hex(),
                        places.empty() ? 0 : places[i]);
  }
  return xxh3_128(std::as_bytes(std::span(text)));
}

/// The tables of what the parts have in common.
Result<std::shared_ptr<CatalogueTables>> shared_tables(
    Parts parts, const MergedClasses& classes, std::string_view part_field) {
  const Catalogue& first = *parts[0];
  auto tables = std::make_shared<CatalogueTables>();
  const bool are_shards = std::ranges::all_of(parts, [](const auto& part) {
    return part->layout() == Layout::kShards;
  });
  tables->layout = are_shards ? Layout::kShards : Layout::kObjects;
  const bool keeps_etags = std::ranges::all_of(parts, [&](const auto& part) {
    return part->etag_kind() == first.etag_kind();
  });
  tables->etag_kind = keeps_etags ? first.etag_kind() : EtagKind::kNone;
  tables->fields = first.fields();
  tables->classes = classes.names;
  tables->total_bytes.reset();
  const FieldSpec label{std::string(kLabel), FieldKind::kInt64};
  if (const auto found = std::ranges::find(tables->fields, label);
      found != tables->fields.end()) {
    tables->label_field =
        static_cast<std::size_t>(found - tables->fields.begin());
  }
  if (part_field.empty()) return tables;
  if (first.field_index(part_field) != first.fields().size()) {
    return invalid(
        "cannot join: the parts have a field '{}', which is to be the number "
        "of a sample's part",
        part_field);
  }
  tables->part_field = tables->fields.size();
  tables->fields.push_back({std::string(part_field), FieldKind::kInt64});
  return tables;
}

}  // namespace

std::string joined_prefix(std::size_t part) {
  return std::to_string(part) + "/";
}

Result<Catalogue> join_catalogues(Parts parts,
                                  std::span<const std::size_t> places,
                                  std::string_view part_field) {
  LEAT_CHECK(!parts.empty());
  LEAT_CHECK(places.empty() || places.size() == parts.size());
  std::vector<std::vector<std::size_t>> fields(parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    LEAT_TRY(fields[i], fields_alike(*parts[0], *parts[i], i));
  }
  LEAT_TRY(MergedClasses classes, merge_classes(parts));
  LEAT_TRY(auto tables, shared_tables(parts, classes, part_field));
  auto keys = std::make_shared<ObjectKeys>();
  std::size_t place = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    CataloguePart part{.from = parts[i],
                       .first_sample = tables->samples,
                       .first_object = keys->count(),
                       .fields = std::move(fields[i]),
                       .labels = std::move(classes.numbers[i])};
    LEAT_TRY_VOID(check_labels(part, tables->label_field));
    const bool is_joined = !places.empty() && places[i] != 0;
    keys->add(*parts[i], place, is_joined);
    place += is_joined ? places[i] : 1;
    tables->samples += parts[i]->samples();
    tables->parts.push_back(std::move(part));
  }
  tables->objects = keys->count();
  if (tables->objects > catalogue_format::kMostObjects ||
      tables->samples > catalogue_format::kMostSamples) {
    return invalid(
        "cannot join {} objects with {} samples, which are more than a "
        "catalogue can hold",
        tables->objects, tables->samples);
  }
  tables->object_keys = keys->column();
  tables->owner = std::move(keys);
  tables->digest = digest_of(*tables, places);
  return CatalogueTables::over(std::move(tables));
}

}  // namespace leat
