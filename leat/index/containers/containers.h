// The containers of this folder, each defined in its own source.
#pragma once
#include "leat/index/container.h"

namespace leat {

extern const Container kTarContainer;
extern const Container kTfrecordContainer;

}  // namespace leat
