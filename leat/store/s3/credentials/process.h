// Runs a program for its output.
#pragma once
#include <cstddef>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "leat/base/clock.h"
#include "leat/base/result.h"

namespace leat {

/// Splits a command as a POSIX shell does, with quotes and backslashes, and
/// nothing else: no variables, no `~`, no pipes. botocore does the same.
///
/// Errors:
///   kInvalidArgument  a quote that does not end, a backslash at the end, no
///                     word at all
Result<std::vector<std::string>> split_command(std::string_view command);

struct ProcessLimits {
  Nanoseconds timeout;
  std::size_t most_output_bytes = 64 << 10;
};

struct ProcessOutput {
  int exit_status = 0;  ///< As a shell shows it: 128 + N after signal N.
  std::string output;
  std::string errors;  ///< The first bytes of its stderr.
};

/// Runs `command` (a program, searched in PATH, and its arguments) without a
/// shell, with our environment and nothing on its standard input. Blocks.
///
/// A program that is not wanted any more is killed.
/// Errors:
///   kInvalidArgument    it cannot be started
///   kResourceExhausted  it prints more than allowed
///   kDeadlineExceeded   it takes longer than allowed
///   kCancelled          `stop` fired first
Result<ProcessOutput> run_process(const std::vector<std::string>& command,
                                  const ProcessLimits& limits,
                                  const std::stop_token& stop);

}  // namespace leat
