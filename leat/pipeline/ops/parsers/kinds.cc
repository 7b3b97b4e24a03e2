// The list of ops of this folder, in the order in which help lists them. It has
// this file to itself: a program that defines parse_op_kinds() in a source of
// its own has other ops, as tests/op does.

#include "leat/pipeline/ops/parsers/kinds.h"

#include <array>

namespace leat {

std::span<const ParseOpKind* const> parse_op_kinds() {
  static constexpr std::array kKinds = {
      &kParseInt, &kParseFloat,   &kParseText,    &kParseJson,
      &kLoadNpy,  &kParseFeature, &kLoadMdsArray, &kLoadLitdataArray};
  return kKinds;
}

}  // namespace leat
