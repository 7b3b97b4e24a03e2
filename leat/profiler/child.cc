#include "leat/profiler/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "leat/base/system_error.h"

namespace leat {
namespace {

using std::chrono_literals::operator""ms;

/// How soon an end or a stop is noticed, and how long a group has to end.
constexpr auto kTick = 10ms;
constexpr auto kPatience = 2000ms;

/// What a child starts with: posix_spawn's objects.
class SpawnPlan {
 public:
  explicit SpawnPlan(const std::string& log) {
    posix_spawn_file_actions_init(&files_);
    posix_spawn_file_actions_addopen(&files_, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files_, 1, log.c_str(),
                                     O_WRONLY | O_CREAT | O_APPEND, 0600);
    posix_spawn_file_actions_adddup2(&files_, 1, 2);
    posix_spawnattr_init(&attributes_);
    // We may have blocked or ignored signals; that is not the child's business.
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attributes_, &none);
    sigset_t usual;
    sigemptyset(&usual);
    sigaddset(&usual, SIGPIPE);
    posix_spawnattr_setsigdefault(&attributes_, &usual);
    posix_spawnattr_setpgroup(&attributes_, 0);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK |
                                               POSIX_SPAWN_SETSIGDEF |
                                               POSIX_SPAWN_SETPGROUP);
  }
  ~SpawnPlan() {
    posix_spawn_file_actions_destroy(&files_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;

  Result<pid_t> spawn(const std::vector<std::string>& words) const {
    std::vector<char*> arguments;
    arguments.reserve(words.size() + 1);
    for (const std::string& word : words) {
      arguments.push_back(const_cast<char*>(word.c_str()));
    }
    arguments.push_back(nullptr);
    pid_t child = 0;
    const int failed = ::posix_spawnp(&child, arguments[0], &files_,
                                      &attributes_, arguments.data(), environ);
    if (failed == 0) return child;
    const Error error = system_error(failed, "starting " + words.front());
    return Error(ErrorCode::kInvalidArgument, error.message());
  }

 private:
  posix_spawn_file_actions_t files_;
  posix_spawnattr_t attributes_;
};

/// The exit status of a child that has ended.
std::optional<int> status_of(pid_t pid) {
  int status = 0;
  const pid_t got = ::waitpid(pid, &status, WNOHANG);
  if (got < 0 && errno == ECHILD) return 0;  // SIGCHLD is ignored: none kept.
  if (got != pid) return std::nullopt;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

Result<Child> Child::start(const std::vector<std::string>& words,
                           const std::filesystem::path& log) {
  LEAT_TRY(const pid_t pid, SpawnPlan(log.string()).spawn(words));
  return Child(pid);
}

Child::Child(Child&& other) noexcept : pid_(std::exchange(other.pid_, 0)) {}

Child::~Child() { end(); }

// Also after the leader has gone: what it started may be left in the group.
void Child::end() {
  if (pid_ == 0) return;
  const pid_t group = std::exchange(pid_, 0);
  ::kill(-group, SIGTERM);
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (::kill(-group, 0) == 0 && std::chrono::steady_clock::now() < until) {
    (void)status_of(group);
    std::this_thread::sleep_for(kTick);
  }
  ::kill(-group, SIGKILL);
  while (::waitpid(group, nullptr, 0) < 0 && errno == EINTR) {
  }
}

Result<int> Child::wait(Nanoseconds limit, const std::stop_token& stop) {
  const TimePoint until = SteadyClock().now() + limit;
  while (true) {
    if (const std::optional<int> status = status_of(pid_)) {
      end();
      return *status;
    }
    if (stop.stop_requested()) {
      end();
      return Error(ErrorCode::kCancelled, "interrupted");
    }
    if (SteadyClock().now() > until) {
      end();
      return Error(
          ErrorCode::kDeadlineExceeded,
          fmt::format(
              "it did not end within {} s",
              std::chrono::duration_cast<std::chrono::seconds>(limit).count()));
    }
    std::this_thread::sleep_for(kTick);
  }
}

}  // namespace leat
