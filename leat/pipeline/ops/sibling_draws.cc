#include "leat/pipeline/ops/sibling_draws.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string>

#include "leat/base/errors.h"
#include "leat/pipeline/ops/op_kind.h"

namespace leat {
namespace {

/// An op of a chain, and that chain.
struct Placed {
  const Op& op;
  const Chain& chain;
};

bool draws_alone(const Op& op) {
  if (op.is_independent) return false;
  if (const auto* function = std::get_if<FunctionOp>(&op.params)) {
    return function->draws && function->fields.empty();
  }
  return draws_colour(op);
}

/// Whether the chain has the op that stands there in the user's list.
bool has(const Chain& chain, std::size_t index) {
  return std::ranges::find(chain.ops, index, &Op::index) != chain.ops.end();
}

std::string remedy(const Placed& one, const Placed& other) {
  if (kind_of(one.op) == OpKind::kFunction) {
    return fmt::format("give one function both, fields=(\"{}\", \"{}\")",
                       one.chain.name, other.chain.name);
  }
  return fmt::format(
      "decode all fields first and put {} once behind them, without field=",
      one.op.name);
}

Error apart(const Placed& one, const Placed& other) {
  return invalid(
      "{} (op {}) draws for '{}', and {} (op {}) for '{}' of the same sample, "
      "each by itself: {}; or say independent=True if they do not belong "
      "together",
      one.op.name, one.op.index, one.chain.name, other.op.name, other.op.index,
      other.chain.name, remedy(one, other));
}

Result<void> check_two(const Chain& one, const Chain& other) {
  for (const Op& op : one.ops) {
    if (!draws_alone(op) || has(other, op.index)) continue;
    const auto twin = std::ranges::find_if(other.ops, [&](const Op& theirs) {
      return theirs.name == op.name && draws_alone(theirs) &&
             !has(one, theirs.index);
    });
    if (twin != other.ops.end()) return apart({op, one}, {*twin, other});
  }
  return {};
}

}  // namespace

Result<void> check_sibling_draws(const std::vector<Chain>& chains) {
  std::vector<const Chain*> pictures;
  for (const Chain& chain : chains) {
    if (!chain.is_spatial() && chain.kind != ChainKind::kFunction) continue;
    for (const Chain* const before : pictures) {
      LEAT_TRY_VOID(check_two(*before, chain));
    }
    pictures.push_back(&chain);
  }
  return {};
}

}  // namespace leat
