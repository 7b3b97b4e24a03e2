// As leat/pipeline/ops/pictures/kinds.h, with a line more.
#pragma once
#include "leat/pipeline/ops/pictures/kinds.h"

namespace leat {

extern const PictureOpKind kRoll;

}  // namespace leat
