// Starts another program.
#pragma once
#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "leat/base/result.h"

namespace leat {

struct SpawnOptions {
  int output = 1;  ///< The file for its standard output,
  int errors = 2;  ///< and the one for its standard error.
};

/// Starts `words` (a program, searched for in PATH, and its arguments) without
/// a shell, with our environment, an empty standard input and no signal
/// blocked. The caller must wait for the child to end.
///
/// Errors:
///   kInvalidArgument  it cannot be started
Result<pid_t> spawn(const std::vector<std::string>& words,
                    const SpawnOptions& options);

/// The exit status of a child that has ended, as a shell shows it: 128 + N
/// after signal N; 0 if the program ignores SIGCHLD, so that no status is kept.
std::optional<int> exit_status_of(pid_t child);

}  // namespace leat
