// A child process that runs a user's program.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "leat/base/clock.h"
#include "leat/base/owned_fd.h"
#include "leat/base/result.h"

namespace leat {

enum class ChildInput : std::uint8_t {
  kEmpty,
  kOpen,  ///< Nothing comes, and it ends when we do.
};

/// A program in a session of its own, its output in a file. It ends with all
/// its processes, in any session, when this is destroyed, and when we end in
/// any way, SIGKILL and a closed terminal included (keeper.h). They get SIGTERM
/// first, and are killed two seconds later.
///
/// Threads: one.
class Child {
 public:
  /// Starts `words` (found on PATH) with our environment, `variables`
  /// (NAME=VALUE) in it, and no signal blocked. Other users can read the words,
  /// and not the variables. `held`, or -1, is kept open until all has ended;
  /// the program does not have it.
  ///
  /// Errors:
  ///   kInvalidArgument    there is no such program; or the errors of the file
  ///   kResourceExhausted  no process or pipe can be made
  static Result<Child> start(const std::vector<std::string>& words,
                             const std::filesystem::path& log,
                             ChildInput input = ChildInput::kEmpty,
                             int held = -1,
                             std::span<const std::string> variables = {});
  ~Child();
  Child(Child&& other) noexcept;
  Child& operator=(Child&&) = delete;

  /// Blocks until it has ended, and all that it started; its exit status,
  /// 128 + N after a signal N.
  ///
  /// Errors:
  ///   kDeadlineExceeded  it ran for longer than `limit`; it is killed
  ///   kCancelled         `stop` fired; it is killed
  Result<int> wait(Nanoseconds limit, const std::stop_token& stop);

  /// One of several that has ended.
  struct End {
    std::size_t child = 0;  ///< Its index.
    int status = 0;
  };
  /// Blocks until one of them has ended with a status that is not 0, or all
  /// have ended. The first of those that failed, once the others are ended
  /// too; else the last one.
  /// REQUIRES: there is one, and none was awaited before.
  ///
  /// Errors: as wait(); all are killed
  static Result<End> wait_for_failure(std::span<Child> children,
                                      Nanoseconds limit,
                                      const std::stop_token& stop);
  /// Ends all at once, so that it takes as long as the slowest of them, and
  /// not as all together.
  static void end_all(std::span<Child> children);

 private:
  Child(pid_t keeper, OwnedFd lifeline)
      : keeper_(keeper), lifeline_(std::move(lifeline)) {}
  void end();
  pid_t keeper_;
  OwnedFd lifeline_;  ///< The keeper ends everything once it is closed.
};

}  // namespace leat
