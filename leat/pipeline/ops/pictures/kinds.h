// The ops of this folder, each defined in its own source.
#pragma once
#include "leat/pipeline/ops/picture_op.h"

namespace leat {

extern const PictureOpKind kRandomErasing;

}  // namespace leat
