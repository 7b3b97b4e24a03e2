#include "leat/index/manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "leat/base/errors.h"
#include "leat/dataset/catalogue_writer.h"
#include "leat/index/stat_all.h"

namespace leat {
namespace {

Result<void> check_column(const Manifest& manifest,
                          const ManifestColumn& column) {
  std::size_t rows = 0;
  switch (column.field.kind) {
    case FieldKind::kBytes:
    case FieldKind::kString:
      rows = column.text_numbers.empty() ? column.texts.size()
                                         : column.text_numbers.size();
      break;
    case FieldKind::kInt64:
      rows = column.ints.size();
      break;
    case FieldKind::kFloat64:
      rows = column.floats.size();
      break;
  }
  const bool is_uneven =
      column.field.kind == FieldKind::kBytes &&
      ((!column.sizes.empty() && column.sizes.size() != rows) ||
       column.offsets.size() != column.lengths.size() ||
       (!column.offsets.empty() && column.offsets.size() != rows));
  for (const std::uint32_t number : column.text_numbers) {
    if (number < column.texts.size()) continue;
    return invalid("column '{}' has no text {}", column.field.name, number);
  }
  if (rows == manifest.rows && !is_uneven) return {};
  return invalid("column '{}' has {} values and the manifest {} rows",
                 column.field.name, rows, manifest.rows);
}

Result<void> check(const Manifest& manifest) {
  bool has_bytes = false;
  for (const ManifestColumn& column : manifest.columns) {
    LEAT_TRY_VOID(check_column(manifest, column));
    has_bytes |= column.field.kind == FieldKind::kBytes;
  }
  if (!manifest.names.empty() && manifest.names.size() != manifest.rows) {
    return invalid("{} names of samples, and the manifest has {} rows",
                   manifest.names.size(), manifest.rows);
  }
  if (has_bytes) return {};
  return invalid("no column of the manifest names objects");
}

/// Every object that a manifest names, once, in order of first appearance.
class Objects {
 public:
  explicit Objects(const Manifest& manifest) {
    for (std::uint64_t row = 0; row < manifest.rows; ++row) {
      for (const ManifestColumn& column : manifest.columns) {
        if (column.field.kind == FieldKind::kBytes) add(column, row);
      }
    }
  }

  std::span<const std::string> keys() const { return keys_; }
  /// "row 3, field image": the first place that names the object.
  std::string where(std::size_t object) const {
    const Place& place = places_[object];
    return fmt::format("row {}, field {}", place.row + 1,
                       place.column->field.name);
  }
  ObjectIndex index_of(const std::string& key) const {
    return {static_cast<std::uint32_t>(numbers_.at(key))};
  }
  /// The sizes that the manifest has; nullopt unless it has all.
  std::optional<std::vector<ObjectInfo>> known() const {
    std::vector<ObjectInfo> infos;
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      const auto& [column, row] = places_[i];
      if (column->sizes.empty()) return std::nullopt;
      infos.push_back({.key = keys_[i], .size_bytes = column->sizes[row]});
    }
    return infos;
  }

 private:
  struct Place {
    const ManifestColumn* column;
    std::uint64_t row;
  };

  void add(const ManifestColumn& column, std::uint64_t row) {
    const std::string& key = column.text(row);
    if (key.empty() || !numbers_.emplace(key, keys_.size()).second) return;
    keys_.push_back(key);
    places_.push_back({&column, row});
  }

  std::vector<std::string> keys_;
  std::vector<Place> places_;
  std::map<std::string, std::size_t> numbers_;
};

Result<std::vector<ObjectInfo>> infos_of(Store& store, std::string_view prefix,
                                         const Objects& objects,
                                         const IndexOptions& options,
                                         const std::stop_token& stop) {
  if (auto known = objects.known()) return *std::move(known);
  IndexProgress progress;
  StatAllOptions asking{.threads = options.threads, .progress = {}};
  if (options.progress) {
    asking.progress = [&](std::uint64_t done) {
      progress.objects = done;
      options.progress(progress);
    };
  }
  return stat_all(
      store, prefix, objects.keys(),
      [&](std::size_t object) { return objects.where(object); }, asking, stop);
}

void set(CatalogueWriter& writer, std::size_t field,
         const ManifestColumn& column, std::uint64_t row,
         const Objects& objects, std::span<const ObjectInfo> infos) {
  switch (column.field.kind) {
    case FieldKind::kInt64:
      return writer.set_int64(field, column.ints[row]);
    case FieldKind::kFloat64:
      return writer.set_float64(field, column.floats[row]);
    case FieldKind::kString:
      return writer.set_string(field, column.text(row));
    case FieldKind::kBytes:
      break;
  }
  if (column.text(row).empty()) return;
  const ObjectIndex object = objects.index_of(column.text(row));
  const bool is_part = !column.offsets.empty();
  writer.set_range(
      field, {object, is_part ? column.offsets[row] : 0,
              is_part ? column.lengths[row] : infos[object.value].size_bytes});
}

Layout layout_of(const Manifest& manifest) {
  const auto has_parts = [](const ManifestColumn& column) {
    return !column.offsets.empty();
  };
  return std::ranges::any_of(manifest.columns, has_parts) ? Layout::kShards
                                                          : Layout::kObjects;
}

const std::string& name_of(const Manifest& manifest, std::uint64_t row) {
  static const std::string none;
  if (!manifest.names.empty()) return manifest.names[row];
  for (const ManifestColumn& column : manifest.columns) {
    if (column.field.kind == FieldKind::kBytes) return column.text(row);
  }
  return none;
}

}  // namespace

Result<BuiltCatalogue> build_from_manifest(Store& store,
                                           std::string_view prefix,
                                           const Manifest& manifest,
                                           const IndexOptions& options,
                                           const std::stop_token& stop) {
  LEAT_TRY_VOID(check(manifest));
  const Objects objects(manifest);
  LEAT_TRY(const std::vector<ObjectInfo> infos,
           infos_of(store, prefix, objects, options, stop));
  const bool keeps_etags =
      options.etags == EtagUse::kKeep && !objects.known().has_value();
  CatalogueWriter writer(layout_of(manifest),
                         keeps_etags ? etag_kind_of(store) : EtagKind::kNone);
  writer.set_classes(manifest.classes);
  for (const ManifestColumn& column : manifest.columns) {
    writer.add_field(column.field);
  }
  for (std::size_t i = 0; i < infos.size(); ++i) {
    writer.add_object({.key = objects.keys()[i],
                       .etag = infos[i].etag,
                       .size_bytes = infos[i].size_bytes});
  }
  for (std::uint64_t row = 0; row < manifest.rows; ++row) {
    writer.add_sample(name_of(manifest, row));
    for (std::size_t field = 0; field < manifest.columns.size(); ++field) {
      set(writer, field, manifest.columns[field], row, objects, infos);
    }
  }
  LEAT_TRY(Buffer bytes, std::move(writer).finish());
  return BuiltCatalogue{.bytes = std::move(bytes), .note = ""};
}

}  // namespace leat
