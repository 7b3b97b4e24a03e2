// leat toy NAME    A command that no user wants, added as leat/cli/README.md
// says.

#include <memory>
#include <ostream>

#include "tests/command/commands.h"

namespace leat {
namespace {

std::function<Result<void>(CommandContext&)> add_toy(CLI::App& app) {
  auto name = std::make_shared<std::string>();
  app.add_option("NAME", *name, "who is greeted")->required();
  app.footer("Example:\n  leat toy bear");
  return [name](CommandContext& context) -> Result<void> {
    context.out << "hello " << *name << '\n';
    return {};
  };
}

}  // namespace

const Command kToyCommand{
    .name = "toy", .summary = "say hello", .add = &add_toy};

}  // namespace leat
