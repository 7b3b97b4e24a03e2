// As leat/index/containers/containers.h, with a line more.
#pragma once
#include "leat/index/containers/containers.h"

namespace leat {

extern const Container kBoxContainer;

}  // namespace leat
