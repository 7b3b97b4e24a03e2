#include "leat/pipeline/ops/function_draws.h"

#include <fmt/format.h>

#include <algorithm>

#include "leat/pipeline/ops/op_table.h"

namespace leat {
namespace {

bool draws_alone(const Op& op) {
  const auto* function = std::get_if<FunctionOp>(&op.params);
  return function != nullptr && function->draws && function->fields.empty() &&
         !op.is_independent;
}

bool draws(const Op& op) {
  const auto* function = std::get_if<FunctionOp>(&op.params);
  if (function != nullptr) return function->draws;
  const OpInfo* const info = find_op(op.name);
  return info != nullptr &&
         std::ranges::any_of(info->params, [](const auto& one) {
           return one.name == kIndependent.name;
         });
}

bool filters(const Op& op) {
  const auto* function = std::get_if<FunctionOp>(&op.params);
  return function != nullptr && function->filters;
}

}  // namespace

Result<void> check_filters(const std::vector<Chain>& chains) {
  for (const Chain& chain : chains) {
    const auto filter = std::ranges::find_if(chain.ops, filters);
    if (filter == chain.ops.end()) continue;
    const auto drawn = std::find_if(chain.ops.begin(), filter, draws);
    if (drawn == filter) continue;
    return Error(
        ErrorCode::kInvalidArgument,
        fmt::format("Filter (op {}) comes after {} (op {}), which draws: it "
                    "would skip other samples in each epoch; put it before "
                    "that op",
                    filter->index, drawn->name, drawn->index));
  }
  return {};
}

Result<void> check_function_draws(const std::vector<Chain>& chains) {
  const Chain* first = nullptr;
  std::size_t first_index = 0;
  for (const Chain& chain : chains) {
    if (!chain.is_spatial() && chain.kind != ChainKind::kFunction) continue;
    const auto found = std::ranges::find_if(chain.ops, draws_alone);
    if (found == chain.ops.end()) continue;
    if (first == nullptr) {
      first = &chain;
      first_index = found->index;
      continue;
    }
    return Error(
        ErrorCode::kInvalidArgument,
        fmt::format("python (op {}) draws for '{}', and python (op {}) for "
                    "'{}' of the same sample, each by itself: give one "
                    "function both, fields=(\"{}\", \"{}\"); or say "
                    "independent=True if they do not belong together",
                    first_index, first->name, found->index, chain.name,
                    first->name, chain.name));
  }
  return {};
}

}  // namespace leat
