// In the place of leat/pipeline/ops/pictures/kinds.cc and of parsers/kinds.cc
// there: their rows, and one more each.

#include "tests/op/kinds.h"

#include <array>

namespace leat {

std::span<const PictureOpKind* const> picture_op_kinds() {
  static constexpr std::array kKinds = {&kRandomErasing, &kRoll};
  return kKinds;
}

std::span<const ParseOpKind* const> parse_op_kinds() {
  static constexpr std::array kKinds = {
      &kParseInt,     &kParseFloat,       &kParseText,
      &kParseJson,    &kLoadNpy,          &kParseFeature,
      &kLoadMdsArray, &kLoadLitdataArray, &kParseRoman};
  return kKinds;
}

}  // namespace leat
