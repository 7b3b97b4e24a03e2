#include "leat/pipeline/delivered_field.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "leat/base/errors.h"
#include "leat/pipeline/ops/shape_program.h"

namespace leat {
namespace {

/// The op or option that makes a field which people expect, or nothing.
std::string_view remedy_for(std::string_view name) {
  if (name == "image") return "; DecodeImage(), in ops=, makes it";
  if (name == "mask") return "; DecodeMask(), in ops=, makes it";
  if (name == "valid") return "; drop_last=\"pad\" makes it";
  return "";
}

constexpr std::string_view kSizeSuffix = "_size";

FieldSource source_of(const OutputField& output, FieldKind kind) {
  if (output.program != nullptr) return FieldSource::kProgram;
  if (output.value_program != nullptr) return FieldSource::kValue;
  switch (kind) {
    case FieldKind::kBytes:
      return FieldSource::kRaw;
    case FieldKind::kInt64:
      return FieldSource::kInt64;
    case FieldKind::kFloat64:
      return FieldSource::kFloat64;
    case FieldKind::kString:
      return FieldSource::kString;
  }
  return FieldSource::kRaw;
}

bool is_an_id(std::string_view name) {
  return name == "index" || name == "key" || name == "valid";
}

/// Errors if a batch would have one `valid` where two are meant.
Result<void> check_padding_is_told_apart(
    const std::vector<OutputField>& outputs,
    const std::vector<std::string>& names) {
  if (std::ranges::find(outputs, "valid", &OutputField::name) ==
          outputs.end() ||
      std::ranges::find(names, "valid") == names.end()) {
    return {};
  }
  return invalid(
      "drop_last=\"pad\" makes a field \"valid\", which tells the padding "
      "apart, "
      "and the samples have a field of that name: give theirs another name, or "
      "leave it out of fields=");
}

/// Lets the samples of a field have any shape, if the delivery permits it.
void loosen(OutputField& output, const FieldChoice& choice) {
  if (!choice.has_batches_of_one && !choice.has_collate) return;
  if (output.program == nullptr || output.program->output()) return;
  give_own_shapes(output, {.joining = Joining::kStack});
}

Joining joining_of(const OutputField& output, const FieldChoice& choice) {
  if (output.value_program == nullptr) return Joining::kStack;
  const Joining joining = output.value_program->joining();
  return joining == Joining::kStack && choice.has_collate ? Joining::kEither
                                                          : joining;
}

bool has_sizes(const DeliveredField& field) {
  return field.source == FieldSource::kValue &&
         (field.joining == Joining::kShapes ||
          field.joining == Joining::kPadded) &&
         field.value_program->pad_rule().is_of_pictures;
}

/// Finds the chosen field to which each kSize field belongs.
Result<void> find_sized(std::vector<DeliveredField>& chosen) {
  for (DeliveredField& field : chosen) {
    if (field.source != FieldSource::kSize) continue;
    const std::string of =
        field.name.substr(0, field.name.size() - kSizeSuffix.size());
    const auto found = std::ranges::find(chosen, of, &DeliveredField::name);
    if (found == chosen.end()) {
      return invalid(
          "fields= names \"{}\" without \"{}\", whose sizes it has: name both",
          field.name, of);
    }
    field.size_of = static_cast<std::size_t>(found - chosen.begin());
  }
  return {};
}

/// Adds columns that are read but not delivered.
void add_only_read(std::vector<DeliveredField>& chosen,
                   const std::vector<FieldSpec>& fields) {
  std::set<std::size_t> there;
  std::set<std::size_t> wanted;
  for (const DeliveredField& field : chosen) {
    if (field.is_fetched() || field.has_ops()) there.insert(field.column);
    wanted.insert(field.also_read.begin(), field.also_read.end());
  }
  for (const std::size_t column : wanted) {
    if (there.contains(column)) continue;
    chosen.push_back({.name = fields[column].name,
                      .source = FieldSource::kOnlyRead,
                      .column = column,
                      .kind = fields[column].kind});
  }
}

}  // namespace

Result<std::vector<DeliveredField>> choose_fields(
    const std::vector<OpSpec>& ops, const std::vector<FieldSpec>& fields,
    const FieldChoice& choice) {
  LEAT_TRY(std::vector<OutputField> outputs, compile_ops(ops, fields));
  std::vector<DeliveredField> all;
  std::vector<std::string> names = choice.names;
  const bool takes_all = names.empty();
  for (OutputField& output : outputs) {
    loosen(output, choice);
    all.push_back({.name = output.name,
                   .source = source_of(output, fields[output.source].kind),
                   .column = output.source,
                   .kind = fields[output.source].kind,
                   .program = output.program,
                   .value_program = output.value_program,
                   .cut_chain = output.cut_chain,
                   .joining = joining_of(output, choice),
                   .also_read = output.also_read});
    if (takes_all) names.push_back(output.name);
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!has_sizes(all[i])) continue;
    all.push_back({.name = all[i].name + std::string(kSizeSuffix),
                   .source = FieldSource::kSize});
  }
  all.push_back({.name = "index", .source = FieldSource::kIndex});
  all.push_back({.name = "key", .source = FieldSource::kKey});
  if (choice.with_ids) names.insert(names.end(), {"index", "key"});
  if (choice.has_valid) {
    if (choice.with_ids) names.emplace_back("valid");
    LEAT_TRY_VOID(check_padding_is_told_apart(outputs, names));
    all.push_back({.name = "valid", .source = FieldSource::kValid});
  }

  std::vector<DeliveredField> chosen;
  std::set<std::string> seen;
  for (const std::string& name : names) {
    const auto found = std::ranges::find(all, name, &DeliveredField::name);
    if (found == all.end()) {
      std::vector<std::string> there;
      there.reserve(all.size());
      for (const DeliveredField& field : all) there.push_back(field.name);
      return invalid("fields= names \"{}\", but there are only: {}{}", name,
                     fmt::join(there, ", "), remedy_for(name));
    }
    if (!seen.insert(name).second) {
      if (choice.with_ids && is_an_id(name)) continue;
      return invalid("fields= names \"{}\" twice", name);
    }
    chosen.push_back(*found);
  }
  LEAT_TRY_VOID(find_sized(chosen));
  add_only_read(chosen, fields);
  return chosen;
}

}  // namespace leat
