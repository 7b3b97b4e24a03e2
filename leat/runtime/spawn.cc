#include "leat/runtime/spawn.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "leat/base/errors.h"

namespace leat {
namespace {

/// posix_spawn's objects, given back with their owner.
class SpawnPlan {
 public:
  explicit SpawnPlan(const SpawnOptions& options) {
    posix_spawn_file_actions_init(&files_);
    posix_spawn_file_actions_addopen(&files_, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files_, options.output, 1);
    posix_spawn_file_actions_adddup2(&files_, options.errors, 2);
    posix_spawnattr_init(&attributes_);
    // We may have blocked or ignored signals; that is not the child's business.
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attributes_, &none);
    sigset_t usual;
    sigemptyset(&usual);
    sigaddset(&usual, SIGPIPE);
    posix_spawnattr_setsigdefault(&attributes_, &usual);
    posix_spawnattr_setflags(&attributes_,
                             POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  ~SpawnPlan() {
    posix_spawn_file_actions_destroy(&files_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;

  int spawn(pid_t& child, std::vector<char*>& arguments) const {
    return ::posix_spawnp(&child, arguments[0], &files_, &attributes_,
                          arguments.data(), environ);
  }

 private:
  posix_spawn_file_actions_t files_;
  posix_spawnattr_t attributes_;
};

}  // namespace

Result<pid_t> spawn(const std::vector<std::string>& words,
                    const SpawnOptions& options) {
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (const std::string& word : words) {
    arguments.push_back(const_cast<char*>(word.c_str()));
  }
  arguments.push_back(nullptr);
  pid_t child = 0;
  const int failed = SpawnPlan(options).spawn(child, arguments);
  if (failed == 0) return child;
  return invalid("{} cannot be started: {}", words.front(),
                 std::strerror(failed));
}

std::optional<int> exit_status_of(pid_t child) {
  int status = 0;
  const pid_t got = ::waitpid(child, &status, WNOHANG);
  if (got < 0 && errno == ECHILD) return 0;
  if (got != child) return std::nullopt;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace leat
