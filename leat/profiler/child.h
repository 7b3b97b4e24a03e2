// A process of ours that runs somebody's program.
#pragma once
#include <sys/types.h>

#include <filesystem>
#include <stop_token>
#include <string>
#include <vector>

#include "leat/base/clock.h"
#include "leat/base/result.h"

namespace leat {

/// A program in a process group of its own, its output in a file. Destroyed, it
/// and what it started in that group are killed.
///
/// Threads: one.
class Child {
 public:
  /// Starts `words` (found on PATH) with our environment.
  ///
  /// Errors:
  ///   kInvalidArgument  there is no such program; or the errors of the file
  static Result<Child> start(const std::vector<std::string>& words,
                             const std::filesystem::path& log);
  ~Child();
  Child(Child&& other) noexcept;
  Child& operator=(Child&&) = delete;

  /// Blocks until it has ended; its exit status, 128 + N after a signal N.
  ///
  /// Errors:
  ///   kDeadlineExceeded  it ran for longer than `limit`; it is killed
  ///   kCancelled         `stop` fired; it is killed
  Result<int> wait(Nanoseconds limit, const std::stop_token& stop);

 private:
  explicit Child(pid_t pid) : pid_(pid) {}
  void end();
  pid_t pid_;
};

}  // namespace leat
