// A sub-command of `leat`.
#pragma once
#include <CLI/CLI.hpp>

#include <functional>
#include <iosfwd>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "leat/base/env.h"
#include "leat/base/result.h"

namespace leat {

/// The streams, environment and stop of a command, so that tests can bring
/// their own.
struct CommandContext {
  std::ostream& out;
  std::ostream& err;
  Env env;
  /// Fires at Ctrl-C and SIGTERM.
  std::stop_token stop;
  /// Whether nobody reads `out` any more, as behind `| head`. Null: nobody can
  /// say, and a write that fails is a failure.
  bool (*is_reader_gone)() = nullptr;
};

/// One file each in cli/, one row each in commands.cc. It has one of the three
/// members behind its summary.
///
/// `add` declares options on `app` (with an example in the footer) and returns
/// what runs if the command was chosen. An Error of kInvalidArgument exits with
/// 2, any other with 1, after its message went to `err`. `take_words` gets the
/// words of the command line as they are, the command's name first. `python`
/// names the module of a command that is written in Python (python_command.h).
struct Command {
  std::string_view name;
  std::string_view summary;
  std::function<Result<void>(CommandContext&)> (*add)(CLI::App& app) = nullptr;
  Result<void> (*take_words)(std::span<const std::string> words,
                             CommandContext& context) = nullptr;
  std::string_view python = {};
};

/// Commands that serve one purpose, in the order in which they are told of.
struct CommandGroup {
  std::string_view purpose;  ///< "Look at data"
  std::vector<const Command*> commands;
};

}  // namespace leat
