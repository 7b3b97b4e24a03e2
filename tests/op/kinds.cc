// In the place of leat/pipeline/ops/pictures/kinds.cc: its row, and one more.

#include "tests/op/kinds.h"

#include <array>

namespace leat {

std::span<const PictureOpKind* const> picture_op_kinds() {
  static constexpr std::array kKinds = {&kRandomErasing, &kRoll};
  return kKinds;
}

}  // namespace leat
