// Commands that are written in Python: this program becomes the interpreter
// that runs them.
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "leat/base/result.h"
#include "leat/cli/command.h"

namespace leat {

/// Replaces this process by LEAT_PYTHON, else python3, which runs the command
/// that `module` defines (see python/leat/_commands.py). `words` are those of
/// the command line, the command's name first. Returns only if that fails.
///
/// Errors:
///   kNotFound  there is no such interpreter
Error become_python(std::string_view module, std::span<const std::string> words,
                    CommandContext& context);

}  // namespace leat
