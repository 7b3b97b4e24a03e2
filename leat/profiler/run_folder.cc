#include "leat/profiler/run_folder.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

#include "leat/base/system_error.h"
#include "leat/profiler/keeper.h"

namespace leat {
namespace {

void remove_tree(const std::filesystem::path& path) {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

/// The body of the process that waits; `held` ends when nobody has its other
/// end.
[[noreturn]] void remove_when_left(const std::filesystem::path& path,
                                   int held) {
  ::setsid();  // A closed terminal is not the end of those who hold it.
  sigset_t all;
  sigfillset(&all);
  ::sigprocmask(SIG_BLOCK, &all, nullptr);
  ::prctl(PR_SET_NAME, "leat-run-folder");
  const int nothing = ::open("/dev/null", O_RDWR);
  for (const int fd : {STDOUT_FILENO, STDERR_FILENO}) ::dup2(nothing, fd);
  ::dup2(held, STDIN_FILENO);
  close_descriptors_from(STDERR_FILENO + 1);
  char unused = 0;
  while (::read(STDIN_FILENO, &unused, 1) != 0) {
  }
  remove_tree(path);
  ::_exit(0);
}

}  // namespace

Result<RunFolder> RunFolder::make() {
  const auto parent = std::filesystem::temp_directory_path();
  std::string name = (parent / "leat-profile-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) {
    return system_error(errno,
                        "making a folder for the runs in " + parent.string());
  }
  RunFolder folder{std::filesystem::path(name)};
  LEAT_TRY_VOID(folder.guard());
  return folder;
}

Result<void> RunFolder::guard() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    return system_error(errno, "a pipe");
  const OwnedFd told(ends[0]);
  held_ = OwnedFd(ends[1]);
  const pid_t guard = ::fork();
  if (guard < 0) return system_error(errno, "a process for the run folder");
  if (guard == 0) remove_when_left(path_, told.get());
  guard_ = guard;
  return {};
}

RunFolder::RunFolder(RunFolder&& other) noexcept
    : path_(std::exchange(other.path_, {})),
      held_(std::move(other.held_)),
      guard_(std::exchange(other.guard_, 0)) {}

RunFolder::~RunFolder() {
  held_ = OwnedFd();
  if (guard_ != 0) {
    while (::waitpid(guard_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  // Runs if somebody ended the process.
  if (!path_.empty()) remove_tree(path_);
}

}  // namespace leat
