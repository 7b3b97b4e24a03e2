#include "leat/index/manifest_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "leat/base/check.h"
#include "leat/dataset/derive.h"
#include "leat/index/stat_all.h"

namespace leat {
namespace {

/// At most this many objects are asked for at once. So their names and answers
/// take little memory, however many objects there are.
constexpr std::size_t kAskedAtOnce = std::size_t{1} << 16;

template <class Vector>
void release(Vector& vector) {
  Vector().swap(vector);
}

}  // namespace

ManifestBuilder::ManifestBuilder(std::vector<ManifestField> fields) {
  for (ManifestField& field : fields) {
    columns_.emplace_back();
    columns_.back().field = std::move(field);
  }
}

void ManifestBuilder::add_value(std::size_t field, const ManifestValue& value) {
  Column& column = columns_[field];
  std::uint32_t object = ByteRange::kMissing;
  if (!value.key.empty()) {
    if (objects_.size() == ByteRange::kMissing) {
      is_full_ = true;
      return;
    }
    const std::size_t known = objects_.size();
    object = objects_.number_of(value.place, value.key);
    const bool is_new = objects_.size() != known;
    if (is_new && has_all_sizes_) {
      has_all_sizes_ = column.field.has_sizes;
      sizes_.push_back(value.size_bytes);
    } else if (has_all_sizes_ && column.field.has_sizes &&
               sizes_[object] != value.size_bytes) {
      note_two_sizes(column, object, value);
    }
  }
  column.objects.push_back(object);
  if (!column.field.has_parts) return;
  column.offsets.push_back(value.offset);
  column.lengths.push_back(value.length_bytes);
}

void ManifestBuilder::note_two_sizes(const Column& column, std::uint32_t object,
                                     const ManifestValue& value) {
  if (!two_sizes_.empty()) return;
  two_sizes_ = fmt::format(
      "row {}, field {}: '{}' has {} bytes, and had {} in a row or field "
      "before; correct the sizes, or leave them out to have the store asked",
      column.objects.size() + 1, column.field.spec.name, value.key,
      value.size_bytes, sizes_[object]);
}

void ManifestBuilder::add_int64(std::size_t field, std::int64_t value) {
  columns_[field].words.push_back(std::bit_cast<std::uint64_t>(value));
}

void ManifestBuilder::add_float64(std::size_t field, double value) {
  columns_[field].words.push_back(std::bit_cast<std::uint64_t>(value));
}

void ManifestBuilder::add_string(std::size_t field, std::string_view value) {
  columns_[field].texts.add(value);
}

void ManifestBuilder::renumber(std::size_t field,
                               std::span<const std::int64_t> numbers) {
  LEAT_CHECK(columns_[field].field.spec.kind == FieldKind::kInt64);
  for (std::uint64_t& word : columns_[field].words) {
    LEAT_CHECK(word < numbers.size());
    word = std::bit_cast<std::uint64_t>(numbers[word]);
  }
}

std::uint64_t ManifestBuilder::values_of(const Column& column) const {
  switch (column.field.spec.kind) {
    case FieldKind::kBytes:
      return column.objects.size();
    case FieldKind::kString:
      return column.texts.ends.size();
    case FieldKind::kInt64:
    case FieldKind::kFloat64:
      break;
  }
  return column.words.size();
}

const ManifestBuilder::Column* ManifestBuilder::first_bytes() const {
  for (const Column& column : columns_) {
    if (column.field.spec.kind == FieldKind::kBytes) return &column;
  }
  return nullptr;
}

Result<void> ManifestBuilder::check() const {
  const Column* const first = first_bytes();
  if (first == nullptr) {
    return Error(ErrorCode::kInvalidArgument,
                 "no column of the manifest names objects");
  }
  if (is_full_) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("the manifest names more than {} objects; make a "
                             "manifest of each part and join the datasets",
                             ByteRange::kMissing));
  }
  if (has_all_sizes_ && !two_sizes_.empty()) {
    return Error(ErrorCode::kInvalidArgument, two_sizes_);
  }
  const std::uint64_t rows = values_of(*first);
  for (const Column& column : columns_) {
    if (values_of(column) == rows) continue;
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("column '{}' has {} values and the manifest {} "
                             "rows",
                             column.field.spec.name, values_of(column), rows));
  }
  if (names_.ends.empty() || names_.ends.size() == rows) return {};
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("{} names of samples, and the manifest has {} rows",
                           names_.ends.size(), rows));
}

/// "row 3, field image": the first place that names the object.
std::string ManifestBuilder::where(std::size_t object) const {
  const std::uint64_t rows = values_of(*first_bytes());
  for (std::uint64_t row = 0; row < rows; ++row) {
    for (const Column& column : columns_) {
      if (column.field.spec.kind == FieldKind::kBytes &&
          column.objects[row] == object) {
        return fmt::format("row {}, field {}", row + 1, column.field.spec.name);
      }
    }
  }
  return "no row";
}

std::string ManifestBuilder::name_in_store(std::size_t object,
                                           bool has_several_places) const {
  const std::string_view key = objects_.key(object);
  if (!has_several_places) return std::string(key);
  return joined_prefix(objects_.place(object)) + std::string(key);
}

/// Fills `sizes_`, and gives the ETags if they are to be kept.
Result<TextPool> ManifestBuilder::ask_for_sizes(Store& store,
                                                std::string_view prefix,
                                                bool has_several_places,
                                                bool keeps_etags,
                                                const IndexOptions& options,
                                                const std::stop_token& stop) {
  TextPool etags;
  sizes_.clear();
  sizes_.reserve(objects_.size());
  IndexProgress progress;
  for (std::size_t from = 0; from < objects_.size(); from += kAskedAtOnce) {
    const std::size_t to = std::min(from + kAskedAtOnce, objects_.size());
    std::vector<std::string> names;
    for (std::size_t i = from; i < to; ++i) {
      names.push_back(name_in_store(i, has_several_places));
    }
    StatAllOptions asking{.threads = options.threads, .progress = {}};
    if (options.progress) {
      asking.progress = [&](std::uint64_t done) {
        progress.objects = from + done;
        options.progress(progress);
      };
    }
    LEAT_TRY(const std::vector<ObjectInfo> infos,
             stat_all(
                 store, prefix, names,
                 [&](std::size_t object) { return where(from + object); },
                 asking, stop));
    for (const ObjectInfo& info : infos) {
      sizes_.push_back(info.size_bytes);
      if (keeps_etags) etags.add(info.etag);
    }
  }
  return etags;
}

/// True if sample i is named as object i is, for all of them.
bool ManifestBuilder::are_named_as_objects(bool has_several_places) const {
  const std::vector<std::uint32_t>& first = first_bytes()->objects;
  if (has_several_places || first.size() != objects_.size()) return false;
  for (std::uint32_t i = 0; i < first.size(); ++i) {
    const bool is_same =
        names_.ends.empty() ? first[i] == i : names_.at(i) == objects_.key(i);
    if (!is_same) return false;
  }
  return true;
}

TextPool ManifestBuilder::sample_names() {
  if (!names_.ends.empty()) return std::move(names_);
  TextPool names;
  const std::vector<std::uint32_t>& first = first_bytes()->objects;
  names.ends.reserve(first.size());
  for (const std::uint32_t object : first) {
    names.add(object == ByteRange::kMissing ? "" : objects_.key(object));
  }
  return names;
}

void ManifestBuilder::fill(CatalogueWriter& writer, std::size_t field) {
  Column& column = columns_[field];
  switch (column.field.spec.kind) {
    case FieldKind::kInt64:
    case FieldKind::kFloat64:
      return writer.take_numbers(field, std::move(column.words));
    case FieldKind::kString:
      return writer.take_strings(field, std::move(column.texts));
    case FieldKind::kBytes:
      break;
  }
  writer.take_ranges(field, [&](std::uint64_t sample) -> ByteRange {
    const std::uint32_t object = column.objects[sample];
    if (object == ByteRange::kMissing) return {};
    if (!column.field.has_parts) {
      return {{object}, 0, writer.object_size({object})};
    }
    return {{object}, column.offsets[sample], column.lengths[sample]};
  });
  release(column.objects);
  release(column.offsets);
  release(column.lengths);
}

Result<BuiltCatalogue> ManifestBuilder::finish(Store& store,
                                               std::string_view prefix,
                                               bool has_several_places,
                                               const IndexOptions& options,
                                               const std::stop_token& stop) && {
  LEAT_TRY_VOID(check());
  const bool keeps_etags = options.etags == EtagUse::kKeep && !has_all_sizes_;
  TextPool etags;
  if (!has_all_sizes_) {
    LEAT_TRY(etags, ask_for_sizes(store, prefix, has_several_places,
                                  keeps_etags, options, stop));
  }
  const EtagKind kind = keeps_etags ? etag_kind_of(store) : EtagKind::kNone;
  if (kind == EtagKind::kNone) etags = {};
  const auto has_parts = [](const Column& column) {
    return column.field.has_parts;
  };
  CatalogueWriter writer(std::ranges::any_of(columns_, has_parts)
                             ? Layout::kShards
                             : Layout::kObjects,
                         kind);
  writer.set_classes(std::move(classes_));
  for (const Column& column : columns_) writer.add_field(column.field.spec);
  const std::uint64_t rows = values_of(*first_bytes());
  const bool are_objects = are_named_as_objects(has_several_places);
  TextPool names = are_objects ? TextPool() : sample_names();
  writer.take_objects(std::move(objects_).take_names(has_several_places),
                      std::move(sizes_), std::move(etags));
  if (are_objects) {
    writer.take_samples_named_as_objects();
  } else {
    writer.take_samples(rows, std::move(names));
  }
  for (std::size_t i = 0; i < columns_.size(); ++i) fill(writer, i);
  LEAT_TRY(Buffer bytes, std::move(writer).finish());
  return BuiltCatalogue{.bytes = std::move(bytes), .note = ""};
}

}  // namespace leat
