// As leat/cli/commands.h, with a line more.
#pragma once
#include "leat/cli/commands.h"

namespace leat {

extern const Command kToyCommand;

}  // namespace leat
