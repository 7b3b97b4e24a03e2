#include "leat/dataset/catalogue_tables.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>

#include "leat/base/check.h"
#include "leat/dataset/catalogue_tables.h"

namespace leat {

using catalogue_format::kRangeBytes;
using catalogue_format::load;
using catalogue_format::PackedRange;
using catalogue_format::unpack;

namespace {

void check(const CatalogueTables& tables, std::size_t field, FieldKind kind,
           SampleId sample) {
  LEAT_CHECK(field < tables.fields.size() &&
             tables.fields[field].kind == kind &&
             sample.value < tables.samples);
}

/// The part of a joined catalogue with the sample; null if it is not joined.
const CataloguePart* part_of(const CatalogueTables& tables, std::size_t field,
                             FieldKind kind, SampleId sample) {
  if (tables.parts.empty()) return nullptr;
  check(tables, field, kind, sample);
  return tables.part_with(sample);
}

}  // namespace

std::string key_in_store(std::string_view prefix,
                         std::string_view relative_key) {
  std::string key;
  key.reserve(prefix.size() + 1 + relative_key.size());
  key.append(prefix);
  if (!prefix.empty() && prefix.back() != '/') key.push_back('/');
  return key.append(relative_key);
}

std::string_view to_string(FieldKind kind) {
  switch (kind) {
    case FieldKind::kBytes:
      return "bytes";
    case FieldKind::kInt64:
      return "int64";
    case FieldKind::kFloat64:
      return "float64";
    case FieldKind::kString:
      return "string";
  }
  return "";
}

Catalogue::Catalogue(std::shared_ptr<const CatalogueTables> tables)
    : tables_(std::move(tables)) {}

std::uint64_t Catalogue::samples() const { return tables_->samples; }
std::uint64_t Catalogue::objects() const { return tables_->objects; }
Layout Catalogue::layout() const { return tables_->layout; }
EtagKind Catalogue::etag_kind() const { return tables_->etag_kind; }
bool Catalogue::has_checksums() const {
  return tables_->has_checksums ||
         std::ranges::any_of(tables_->parts, [](const CataloguePart& part) {
           return part.from->has_checksums();
         });
}
std::uint64_t Catalogue::total_bytes() const {
  if (tables_->total_bytes) return *tables_->total_bytes;
  std::uint64_t total = 0;
  for (const CataloguePart& part : tables_->parts) {
    if (__builtin_add_overflow(total, part.from->total_bytes(), &total)) {
      return std::numeric_limits<std::uint64_t>::max();
    }
  }
  if (!tables_->parts.empty()) return total;
  for (std::size_t field = 0; field < fields().size(); ++field) {
    if (fields()[field].kind != FieldKind::kBytes) continue;
    for (SampleId id; id.value < samples(); ++id.value) {
      const std::uint64_t length = range(field, id).length_bytes;
      if (__builtin_add_overflow(total, length, &total)) {
        return std::numeric_limits<std::uint64_t>::max();
      }
    }
  }
  return total;
}
namespace {

/// A sample without bytes would be of the piece before it, in another part.
bool begins_with_bytes(const Catalogue& part) {
  for (std::size_t field = 0; field < part.fields().size(); ++field) {
    if (part.fields()[field].kind == FieldKind::kBytes &&
        !part.range(field, SampleId{0}).is_missing()) {
      return true;
    }
  }
  return false;
}

/// Those of all parts; empty if one does not say its own.
std::vector<std::uint64_t> joined_pieces(
    const std::vector<CataloguePart>& parts) {
  std::vector<std::uint64_t> all = {0};
  for (const CataloguePart& part : parts) {
    if (part.from->samples() == 0) continue;
    const std::vector<std::uint64_t> its = part.from->pieces();
    if (its.empty() || !begins_with_bytes(*part.from)) return {};
    all.pop_back();  // The end of the part before is where this one begins.
    for (const std::uint64_t first : its) {
      all.push_back(part.first_sample + first);
    }
  }
  return all;
}

}  // namespace

std::vector<std::uint64_t> Catalogue::pieces() const {
  if (!tables_->parts.empty()) return joined_pieces(tables_->parts);
  std::vector<std::uint64_t> pieces(tables_->pieces.size() / 8);
  if (!pieces.empty()) {
    std::memcpy(pieces.data(), tables_->pieces.data(), 8 * pieces.size());
  }
  return pieces;
}

Hash128 Catalogue::digest() const { return tables_->digest; }

const std::vector<FieldSpec>& Catalogue::fields() const {
  return tables_->fields;
}
const std::vector<std::string>& Catalogue::classes() const {
  return tables_->classes;
}

std::string_view Catalogue::key(SampleId sample) const {
  LEAT_CHECK(sample.value < tables_->samples);
  if (const CataloguePart* part = tables_->part_with(sample)) {
    return part->from->key(part->own(sample));
  }
  return tables_->sample_keys.at(sample.value);
}

const CatalogueColumn& Catalogue::column(std::size_t field, FieldKind kind,
                                         SampleId sample) const {
  check(*tables_, field, kind, sample);
  return tables_->columns[field];
}

ByteRange Catalogue::range(std::size_t field, SampleId sample) const {
  if (const auto* in = part_of(*tables_, field, FieldKind::kBytes, sample)) {
    ByteRange range = in->from->range(in->fields[field], in->own(sample));
    if (range.is_missing()) return range;
    range.object.value += static_cast<std::uint32_t>(in->first_object);
    return range;
  }
  const CatalogueColumn& of = column(field, FieldKind::kBytes, sample);
  const ByteRange range =
      unpack(load<PackedRange>(of.values + sample.value * kRangeBytes));
  // Only if ranges were not checked: object() must be safe to call with it.
  return range.object.value < tables_->objects ? range : ByteRange();
}

std::optional<std::uint32_t> Catalogue::checksum(std::size_t field,
                                                 SampleId sample) const {
  if (const auto* in = part_of(*tables_, field, FieldKind::kBytes, sample)) {
    return in->from->checksum(in->fields[field], in->own(sample));
  }
  const CatalogueColumn& of = column(field, FieldKind::kBytes, sample);
  if (of.checksums == nullptr) return std::nullopt;
  const auto crc = load<std::uint32_t>(of.checksums + sample.value * 4);
  return crc == catalogue_format::kNoChecksum ? std::nullopt
                                              : std::optional(crc);
}

std::int64_t Catalogue::int64(std::size_t field, SampleId sample) const {
  if (const auto* in = part_of(*tables_, field, FieldKind::kInt64, sample)) {
    if (field == tables_->part_field) return in - tables_->parts.data();
    const std::int64_t own =
        in->from->int64(in->fields[field], in->own(sample));
    // join_catalogues() has refused labels that have no name.
    const auto label = static_cast<std::uint64_t>(own);
    const bool is_renumbered =
        field == tables_->label_field && label < in->labels.size();
    return is_renumbered ? in->labels[label] : own;
  }
  const CatalogueColumn& of = column(field, FieldKind::kInt64, sample);
  const std::byte* at = of.values + sample.value * of.width;
  switch (of.width) {
    case 1:
      return load<std::int8_t>(at);
    case 2:
      return load<std::int16_t>(at);
    case 4:
      return load<std::int32_t>(at);
    default:
      return load<std::int64_t>(at);
  }
}

double Catalogue::float64(std::size_t field, SampleId sample) const {
  if (const auto* in = part_of(*tables_, field, FieldKind::kFloat64, sample)) {
    return in->from->float64(in->fields[field], in->own(sample));
  }
  const CatalogueColumn& of = column(field, FieldKind::kFloat64, sample);
  const std::byte* at = of.values + sample.value * of.width;
  return of.width == 4 ? load<float>(at) : load<double>(at);
}

std::string_view Catalogue::string(std::size_t field, SampleId sample) const {
  if (const auto* in = part_of(*tables_, field, FieldKind::kString, sample)) {
    return in->from->string(in->fields[field], in->own(sample));
  }
  return column(field, FieldKind::kString, sample).text.at(sample.value);
}

ObjectView Catalogue::object(ObjectIndex object) const {
  LEAT_CHECK(object.value < tables_->objects);
  const std::uint64_t i = object.value;
  if (const CataloguePart* part = tables_->part_with(object)) {
    ObjectView view = part->from->object(
        {static_cast<std::uint32_t>(i - part->first_object)});
    view.key = tables_->object_keys.at(i);
    if (tables_->etag_kind == EtagKind::kNone) view.etag = {};
    return view;
  }
  return {.key = tables_->object_keys.at(i),
          .etag = tables_->etag_kind == EtagKind::kNone ? std::string_view()
                                                        : tables_->etags.at(i),
          .size_bytes = load<std::uint64_t>(tables_->object_sizes + i * 8)};
}

std::size_t Catalogue::field_index(std::string_view name) const {
  std::size_t i = 0;
  while (i < tables_->fields.size() && tables_->fields[i].name != name) ++i;
  return i;
}

}  // namespace leat
