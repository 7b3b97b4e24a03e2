#include "leat/pipeline/delivered_field.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

namespace leat {
namespace {

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

}  // namespace

Result<std::vector<DeliveredField>> choose_fields(
    const std::vector<OpSpec>& ops, const std::vector<FieldSpec>& fields,
    const FieldChoice& choice) {
  LEAT_TRY(const std::vector<OutputField> outputs, compile_ops(ops, fields));
  std::vector<DeliveredField> all;
  std::vector<std::string> names = choice.names;
  const bool takes_all = names.empty();
  for (const OutputField& output : outputs) {
    all.push_back({.name = output.name,
                   .source = source_of(output, fields[output.source].kind),
                   .column = output.source,
                   .kind = fields[output.source].kind,
                   .program = output.program,
                   .value_program = output.value_program,
                   .cut_chain = output.cut_chain});
    if (takes_all) names.push_back(output.name);
  }
  all.push_back({.name = "index", .source = FieldSource::kIndex});
  all.push_back({.name = "key", .source = FieldSource::kKey});
  if (choice.with_ids) names.insert(names.end(), {"index", "key"});
  if (choice.has_valid) {
    all.push_back({.name = "valid", .source = FieldSource::kValid});
    if (choice.with_ids) names.emplace_back("valid");
  }

  std::vector<DeliveredField> chosen;
  std::set<std::string> seen;
  for (const std::string& name : names) {
    const auto found = std::ranges::find(all, name, &DeliveredField::name);
    if (found == all.end()) {
      std::vector<std::string> there;
      there.reserve(all.size());
      for (const DeliveredField& field : all) there.push_back(field.name);
      return Error(ErrorCode::kInvalidArgument,
                   fmt::format("fields= names \"{}\", but there are only: {}",
                               name, fmt::join(there, ", ")));
    }
    if (!seen.insert(name).second) {
      if (choice.with_ids && is_an_id(name)) continue;
      return Error(ErrorCode::kInvalidArgument,
                   fmt::format("fields= names \"{}\" twice", name));
    }
    chosen.push_back(*found);
  }
  return chosen;
}

}  // namespace leat
