#include "leat/profiler/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "leat/base/owned_fd.h"
#include "leat/base/system_error.h"
#include "leat/runtime/spawn.h"

namespace leat {
namespace {

using std::chrono_literals::operator""ms;

/// How soon an end or a stop is noticed, and how long a group has to end.
constexpr auto kTick = 10ms;
constexpr auto kPatience = 2000ms;

}  // namespace

Result<Child> Child::start(const std::vector<std::string>& words,
                           const std::filesystem::path& log) {
  const OwnedFd file(
      ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!file) return system_error(errno, log.string());
  LEAT_TRY(const pid_t pid, spawn(words, {.output = file.get(),
                                          .errors = file.get(),
                                          .leads_group = true}));
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
    (void)exit_status_of(group);
    std::this_thread::sleep_for(kTick);
  }
  ::kill(-group, SIGKILL);
  while (::waitpid(group, nullptr, 0) < 0 && errno == EINTR) {
  }
}

Result<int> Child::wait(Nanoseconds limit, const std::stop_token& stop) {
  const TimePoint until = SteadyClock().now() + limit;
  while (true) {
    if (const std::optional<int> status = exit_status_of(pid_)) {
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
