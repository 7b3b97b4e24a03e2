// Nothing that we start outlives us.
#pragma once
#include <span>

namespace leat {

/// A keeper is a process that stands between us and a user's program. It starts
/// the program. Once the program has ended or we have, it ends all that came of
/// the program, in every session and process group. It is the subreaper of all
/// of them (Linux: prctl(2)), so that none escapes by losing its parent.
///
/// To call after fork(), in the child: it closes every other descriptor, and
/// its memory is ours as it was. It hears no terminal and no SIGTERM.
struct KeptProgram {
  std::span<char* const> words;  ///< Found on PATH; the last one null.
  /// NAME=VALUE, all of its environment; the last one null.
  std::span<char* const> variables;
  int log;       ///< Takes its standard output and error.
  int lifeline;  ///< Read end; at its end, so do we.
  int report;    ///< Takes an int, errno, if it cannot start.
  /// Else its standard input is empty. So it ends when we do.
  bool keeps_input_open;
  /// Stays open until all has ended, and is not the program's; or -1.
  int held;
};

/// Ends with the program's exit status, 128 + N after a signal N.
[[noreturn]] void keep(const KeptProgram& program);

/// Closes all descriptors of this process from that one on.
void close_descriptors_from(int first);

}  // namespace leat
