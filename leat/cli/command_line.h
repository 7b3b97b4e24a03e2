// From the words of a command line to an exit code.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "leat/cli/command.h"

namespace leat {

enum class ExitCode : int {
  kDone = 0,
  kFailed = 1,
  kWrongUsage = 2,
  kReaderGone = 141,  ///< As of a program that SIGPIPE ended: 128 + 13.
};

/// Chooses the command that `words` name (without the program's own) among
/// those of `groups`, reads its options and runs it. Blocks until it is done.
///
/// The text that the user asked for (`--help`, `--version`; without words, the
/// list of commands) goes to `context.out`; a failure goes to `context.err` as
/// one line `leat: …`. A command whose reader has gone ends silently.
ExitCode run_command_line(std::vector<std::string> words,
                          std::span<const CommandGroup> groups,
                          CommandContext& context);

}  // namespace leat
