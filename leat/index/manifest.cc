#include "leat/index/manifest.h"

#include <fmt/format.h>

#include <utility>

#include "leat/base/errors.h"
#include "leat/index/manifest_builder.h"

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

ManifestBuilder builder_of(const Manifest& manifest) {
  std::vector<ManifestField> fields;
  for (const ManifestColumn& column : manifest.columns) {
    fields.push_back({.spec = column.field,
                      .has_sizes = !column.sizes.empty(),
                      .has_parts = !column.offsets.empty()});
  }
  ManifestBuilder builder(std::move(fields));
  builder.set_classes(manifest.classes);
  for (const std::string& name : manifest.names) builder.add_name(name);
  return builder;
}

void add(ManifestBuilder& builder, std::size_t field,
         const ManifestColumn& column, std::uint64_t row) {
  switch (column.field.kind) {
    case FieldKind::kInt64:
      return builder.add_int64(field, column.ints[row]);
    case FieldKind::kFloat64:
      return builder.add_float64(field, column.floats[row]);
    case FieldKind::kString:
      return builder.add_string(field, column.text(row));
    case FieldKind::kBytes:
      break;
  }
  ManifestValue value{.key = column.text(row)};
  if (!column.sizes.empty()) value.size_bytes = column.sizes[row];
  if (!column.offsets.empty()) {
    value.offset = column.offsets[row];
    value.length_bytes = column.lengths[row];
  }
  builder.add_value(field, value);
}

}  // namespace

Result<BuiltCatalogue> build_from_manifest(Store& store,
                                           std::string_view prefix,
                                           const Manifest& manifest,
                                           const IndexOptions& options,
                                           const std::stop_token& stop) {
  LEAT_TRY_VOID(check(manifest));
  ManifestBuilder builder = builder_of(manifest);
  for (std::uint64_t row = 0; row < manifest.rows; ++row) {
    for (std::size_t field = 0; field < manifest.columns.size(); ++field) {
      add(builder, field, manifest.columns[field], row);
    }
  }
  return std::move(builder).finish(store, prefix, false, options, stop);
}

}  // namespace leat
