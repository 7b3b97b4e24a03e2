#include "leat/pipeline/ops/filter_place.h"

#include <algorithm>

#include "leat/base/errors.h"
#include "leat/pipeline/ops/op_kind.h"

namespace leat {
namespace {

bool draws(const Op& op) {
  if (const auto* function = std::get_if<FunctionOp>(&op.params)) {
    return function->draws;
  }
  return kind_of(op) == OpKind::kRandomGeometry || draws_colour(op);
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
    return invalid(
        "Filter (op {}) comes after {} (op {}), which draws: it would skip "
        "other samples in each epoch; put it before that op",
        filter->index, drawn->name, drawn->index);
  }
  return {};
}

}  // namespace leat
