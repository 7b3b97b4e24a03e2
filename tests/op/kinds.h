// As the lists of leat/pipeline/ops/pictures and of leat/pipeline/ops/parsers,
// with a line more each.
#pragma once
#include "leat/pipeline/ops/parsers/kinds.h"
#include "leat/pipeline/ops/pictures/kinds.h"

namespace leat {

extern const PictureOpKind kRoll;
extern const ParseOpKind kParseRoman;

}  // namespace leat
