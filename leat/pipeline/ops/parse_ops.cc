// Ops as text: the command line's spelling, and Python's JSON.

#include <nlohmann/json.hpp>

#include "leat/base/errors.h"
#include "leat/base/text.h"
#include "leat/pipeline/ops/op_table.h"
#include "leat/pipeline/program/program.h"

namespace leat {
namespace {

using Json = nlohmann::json;

/// Cuts `text` at every `separator`.
std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\n") - first + 1);
}

Json scalar_of(std::string_view text) {
  if (text == "true") return true;
  if (text == "false") return false;
  if (const auto whole = number_from<std::int64_t>(text)) return *whole;
  if (const auto number = number_from<double>(text)) return *number;
  return std::string(text);
}

Json value_of(const ParamInfo& param, std::string_view text) {
  if (param.kind == ParamKind::kText) return std::string(text);
  const std::vector<std::string_view> parts = split(text, '/');
  if (parts.size() == 1) return scalar_of(text);
  Json list = Json::array();
  for (const std::string_view part : parts) list.push_back(scalar_of(part));
  return list;
}

Error unknown_op(std::string_view name) {
  return invalid("there is no op '{}'; there are {}", name, op_names());
}

/// "resize:256:interpolation=bicubic"
Result<OpSpec> parse_op(std::string_view text) {
  const std::vector<std::string_view> parts = split(text, ':');
  const OpInfo* op = find_op(trimmed(parts[0]));
  if (op == nullptr) return unknown_op(trimmed(parts[0]));

  Json params = Json::object();
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const std::size_t equals = parts[i].find('=');
    const bool has_name = equals != std::string_view::npos;
    if (!has_name && i > 1) {
      return invalid(
          "{}: '{}' needs the name of a parameter, as in name={}; there are {}",
          op->name, parts[i], parts[i], param_names(*op));
    }
    const std::string_view name =
        has_name ? trimmed(parts[i].substr(0, equals)) : unnamed_param(*op);
    const ParamInfo* param = find_param(*op, name);
    if (param == nullptr) {
      return invalid("{} has no parameter '{}'; it has {}", op->name, name,
                     param_names(*op));
    }
    params[std::string(name)] = value_of(
        *param, trimmed(has_name ? parts[i].substr(equals + 1) : parts[i]));
  }
  return OpSpec{std::string(op->name), params.dump()};
}

}  // namespace

Result<std::vector<OpSpec>> parse_ops(std::string_view text) {
  std::vector<OpSpec> ops;
  if (trimmed(text).empty()) return ops;
  for (const std::string_view part : split(text, ',')) {
    LEAT_TRY(OpSpec op, parse_op(part));
    ops.push_back(std::move(op));
  }
  return ops;
}

Result<std::vector<OpSpec>> ops_from_json(std::string_view json) {
  const Json list = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!list.is_array()) {
    return invalid(R"(ops are no JSON list of {"name": ..., "params": {...}})");
  }
  std::vector<OpSpec> ops;
  for (const Json& entry : list) {
    if (!entry.is_object() || !entry.contains("name") ||
        !entry["name"].is_string()) {
      return invalid("op {} has no name", ops.size());
    }
    OpSpec op{entry["name"].get<std::string>(), "{}"};
    if (find_op(op.name) == nullptr) return unknown_op(op.name);
    if (entry.contains("params")) op.params_json = entry["params"].dump();
    ops.push_back(std::move(op));
  }
  return ops;
}

}  // namespace leat
