// In the place of leat/cli/commands.cc: some of its rows, and two more.

#include "tests/command/commands.h"

#include <vector>

namespace leat {
namespace {

const Command kToyOfPython{.name = "toy-python",
                           .summary = "say hello from Python",
                           .python = "toy_of_python"};

}  // namespace

std::span<const CommandGroup> commands() {
  static const std::vector<CommandGroup> kCommands = {
      {"Look at data and index it", {&kLsCommand, &kStatCommand}},
      {"Play", {&kToyCommand, &kToyOfPython}},
  };
  return kCommands;
}

}  // namespace leat
