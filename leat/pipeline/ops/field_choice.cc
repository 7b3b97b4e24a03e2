#include "leat/pipeline/ops/field_choice.h"

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "leat/base/errors.h"
#include "leat/codec/image/image_codec.h"
#include "leat/pipeline/ops/op_kind.h"
#include "leat/pipeline/ops/parse_op.h"

namespace leat {
namespace {

/// The endings of all formats, and the names of columns.
std::vector<std::string_view> usual_images() {
  std::vector<std::string_view> names;
  for (const ImageCodec* codec : image_codecs()) {
    names.insert(names.end(), codec->endings.begin(), codec->endings.end());
  }
  names.insert(names.end(), {"image", "data"});
  return names;
}

/// Fields that an op works on if it is not told which: images by the usual
/// names, the rest by WebDataset's extensions.
std::span<const std::string_view> usual_names(const Op& op) {
  static const std::vector<std::string_view> kImages = usual_images();
  static constexpr std::string_view kMasks[] = {"mask", "seg", "segmentation"};
  static constexpr std::string_view kJsons[] = {"json", "jsn"};
  if (const auto* decode = std::get_if<DecodeImageOp>(&op.params)) {
    return decode->is_mask() ? std::span<const std::string_view>(kMasks)
                             : kImages;
  }
  if (const auto* parse = std::get_if<ParseOpParams>(&op.params)) {
    return parse->kind->usual_fields;
  }
  if (reads_followers(op)) return kJsons;
  return {};
}

/// Functions read anything, and texts are parsed in any kind of field.
bool can_read(const Op& op, FieldKind kind) {
  const auto* const parse = std::get_if<ParseOpParams>(&op.params);
  const bool parses =
      parse != nullptr ? parse->kind->reads_texts : reads_followers(op);
  return kind == FieldKind::kBytes || kind_of(op) == OpKind::kFunction ||
         (parses && kind == FieldKind::kString);
}

std::string choices(const std::vector<FieldSpec>& fields) {
  std::string names;
  for (const FieldSpec& field : fields) {
    if (field.kind != FieldKind::kBytes) continue;
    names += names.empty() ? "fields of bytes: " : ", ";
    names += field.name;
  }
  return names.empty() ? "the dataset has no field of bytes" : names;
}

Result<std::size_t> named_field(const Op& op,
                                const std::vector<FieldSpec>& fields) {
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].name != op.field) continue;
    if (can_read(op, fields[i].kind)) return i;
    return invalid(
        "{} (op {}): field '{}' is a number or a text of the catalogue, which "
        "the op does not read; {}",
        op.name, op.index, op.field, choices(fields));
  }
  return invalid("{} (op {}): there is no field '{}'; {}", op.name, op.index,
                 op.field, choices(fields));
}

/// The only field of bytes, or the only one that is named as the op's
/// usually are.
Result<std::size_t> only_field(const Op& op,
                               const std::vector<FieldSpec>& fields) {
  const std::span<const std::string_view> usual = usual_names(op);
  const auto is_named_so = [&](const FieldSpec& field) {
    return std::ranges::find(usual, field.name) != usual.end();
  };
  std::vector<std::size_t> bytes;
  std::vector<std::size_t> named;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].kind != FieldKind::kBytes) continue;
    bytes.push_back(i);
    if (is_named_so(fields[i])) named.push_back(i);
  }
  if (bytes.size() == 1) return bytes[0];
  if (named.size() == 1) return named[0];
  return invalid("{}: say which field with field=\"...\"; {}", op.name,
                 choices(fields));
}

}  // namespace

Result<std::size_t> field_read_by(const Op& op,
                                  const std::vector<FieldSpec>& fields) {
  return op.field.empty() ? only_field(op, fields) : named_field(op, fields);
}

}  // namespace leat
