// leat ops    Prints the ops that --ops takes: the table that they are made
// from.

#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string_view>

#include "leat/cli/commands.h"
#include "leat/pipeline/ops/op_table.h"

namespace leat {
namespace {

nlohmann::ordered_json params_json(std::span<const ParamInfo> params) {
  auto all = nlohmann::ordered_json::array();
  for (const ParamInfo& param : params) {
    nlohmann::ordered_json told = {{"name", param.name}, {"doc", param.doc}};
    if (!param.default_json.empty()) {
      told["default"] = nlohmann::ordered_json::parse(param.default_json);
    }
    all.push_back(std::move(told));
  }
  return all;
}

nlohmann::ordered_json ops_json() {
  auto ops = nlohmann::ordered_json::array();
  for (const OpInfo& op : op_table()) {
    ops.push_back({{"name", op.name},
                   {"doc", op.doc},
                   {"unnamed", unnamed_param(op)},
                   {"params", params_json(op.params)}});
  }
  return {{"ops", std::move(ops)},
          {"params_of_all", params_json(common_params())}};
}

std::function<Result<void>(CommandContext&)> add_ops(CLI::App& app) {
  auto is_json = std::make_shared<bool>(false);
  app.add_flag("--json", *is_json, "print JSON");
  app.footer("Example:\n  leat ops");
  return [is_json](CommandContext& context) -> Result<void> {
    if (*is_json) {
      context.out << ops_json().dump() << '\n';
    } else {
      context.out << ops_help();
    }
    return {};
  };
}

}  // namespace

const Command kOpsCommand{
    .name = "ops",
    .summary = "list the ops that --ops takes, with their parameters",
    .add = &add_ops,
};

}  // namespace leat
