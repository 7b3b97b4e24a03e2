// As leat/engine/schemes/schemes.h, with a line more.
#pragma once
#include "leat/engine/schemes/schemes.h"

namespace leat {

extern const Scheme kToyScheme;

}  // namespace leat
