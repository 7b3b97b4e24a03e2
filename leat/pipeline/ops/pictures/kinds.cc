// The list of ops of this folder, in the order in which help lists them. It has
// this file to itself: a program that defines picture_op_kinds() in a source of
// its own has other ops, as tests/op does.

#include "leat/pipeline/ops/pictures/kinds.h"

#include <array>

namespace leat {

std::span<const PictureOpKind* const> picture_op_kinds() {
  static constexpr std::array kKinds = {&kRandomErasing};
  return kKinds;
}

}  // namespace leat
