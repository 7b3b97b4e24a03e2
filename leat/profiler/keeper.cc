// Between fork() and exec() of a program that may have threads, only malloc()
// and what locks nothing may be called; the keeper never comes to an exec().
// Hence the C library's own calls instead of streams.

#include "leat/profiler/keeper.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace leat {
namespace {

using std::chrono_literals::operator""ms;

/// How long those who are told to end have for it.
constexpr auto kPatience = 2000ms;
constexpr int kTickMilliseconds = 10;

/// The keeper's descriptors: all above are closed.
constexpr int kLifeline = 3;
constexpr int kReport = 4;
constexpr int kHeld = 5;

/// The living processes with their parents: {process, parent}.
std::vector<std::pair<pid_t, pid_t>> living_processes() {
  std::vector<std::pair<pid_t, pid_t>> found;
  DIR* const all = ::opendir("/proc");
  if (all == nullptr) return found;
  while (const dirent* const entry = ::readdir(all)) {
    const std::string_view name(entry->d_name);
    pid_t pid = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), pid).ec !=
        std::errc()) {
      continue;
    }
    std::array<char, 64> path{"/proc/"};
    std::ranges::copy(name, path.begin() + 6);
    std::ranges::copy(std::string_view("/stat"),
                      path.begin() + 6 + static_cast<long>(name.size()));
    const int file = ::open(path.data(), O_RDONLY | O_CLOEXEC);
    if (file < 0) continue;
    std::array<char, 512> text;
    const ssize_t size = ::read(file, text.data(), text.size());
    ::close(file);
    if (size <= 0) continue;
    // "17 (any name) S 4 …": the name may hold anything, the rest may not.
    const std::string_view stat(text.data(), static_cast<std::size_t>(size));
    const std::size_t end = stat.rfind(')');
    if (end == std::string_view::npos || end + 4 >= stat.size()) continue;
    pid_t parent = 0;
    std::from_chars(stat.data() + end + 4, stat.data() + stat.size(), parent);
    if (stat[end + 2] != 'Z') found.emplace_back(pid, parent);
  }
  ::closedir(all);
  return found;
}

/// All that came of this process and live. A dead one's children are the
/// keeper's own, so the chain of parents never breaks.
std::vector<pid_t> descendants() {
  const auto all = living_processes();
  std::vector<pid_t> found = {::getpid()};
  for (std::size_t i = 0; i < found.size(); ++i) {
    for (const auto& [pid, parent] : all) {
      if (parent == found[i]) found.push_back(pid);
    }
  }
  found.erase(found.begin());
  return found;
}

/// Takes note of the ends of all children; the status of `program`, if it is
/// among them.
std::optional<int> reap(pid_t program) {
  std::optional<int> ended;
  int status = 0;
  while (const pid_t pid = ::waitpid(-1, &status, WNOHANG)) {
    if (pid < 0 && errno == EINTR) continue;
    if (pid < 0) break;
    if (pid != program) continue;
    ended = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  return ended;
}

void end_descendants() {
  for (const pid_t pid : descendants()) ::kill(pid, SIGTERM);
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (true) {
    (void)reap(0);
    const std::vector<pid_t> left = descendants();
    if (left.empty()) return;
    if (std::chrono::steady_clock::now() > until) {
      for (const pid_t pid : left) ::kill(pid, SIGKILL);
    }
    ::poll(nullptr, 0, kTickMilliseconds);
  }
}

[[noreturn]] void become(const KeptProgram& program, pid_t keeper) {
  // Ends the program if somebody kills the keeper. The kernel forgets this when
  // the program takes another user's rights.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != keeper) ::_exit(127);  // It ended before the line above.
  ::setpgid(0, 0);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  ::execvpe(program.words.front(), program.words.data(),
            program.variables.data());
  const int why = errno;
  (void)!::write(kReport, &why, sizeof why);
  ::_exit(127);
}

/// An input of which nothing comes, for as long as the keeper lives.
void keep_input_open() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return;
  ::dup2(ends[0], STDIN_FILENO);
}

/// Puts the descriptors into their places, which may be one another's now.
void take_descriptors(const KeptProgram& program) {
  const auto aside = [](int fd) { return ::fcntl(fd, F_DUPFD, kHeld + 1); };
  const int log = aside(program.log);
  const int lifeline = aside(program.lifeline);
  const int report = aside(program.report);
  const int held = program.held < 0 ? -1 : aside(program.held);
  const int nothing = ::open("/dev/null", O_RDONLY);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(log, STDOUT_FILENO);
  ::dup2(log, STDERR_FILENO);
  ::dup3(lifeline, kLifeline, O_CLOEXEC);
  ::dup3(report, kReport, O_CLOEXEC);
  if (held >= 0) ::dup3(held, kHeld, O_CLOEXEC);
  close_descriptors_from(held >= 0 ? kHeld + 1 : kHeld);
}

}  // namespace

void close_descriptors_from(int first) {
  if (::syscall(SYS_close_range, first, ~0U, 0U) == 0) return;
  for (long fd = ::sysconf(_SC_OPEN_MAX) - 1; fd >= first; --fd) {
    ::close(static_cast<int>(fd));
  }
}

void keep(const KeptProgram& program) {
  take_descriptors(program);
  if (program.keeps_input_open) keep_input_open();
  ::prctl(PR_SET_NAME, "leat-keeper");
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  ::setsid();
  ::signal(SIGCHLD, SIG_DFL);  // Ignored by us, nobody would tell of an end.
  sigset_t heard;
  sigemptyset(&heard);
  for (const int signal : {SIGCHLD, SIGTERM, SIGINT}) {
    sigaddset(&heard, signal);
  }
  ::sigprocmask(SIG_BLOCK, &heard, nullptr);
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGCHLD);
  const int children = ::signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK);

  const pid_t self = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) become(program, self);
  if (child < 0) {
    const int why = errno;
    (void)!::write(kReport, &why, sizeof why);
    ::_exit(127);
  }
  ::close(kReport);

  std::optional<int> status;
  while (!status) {
    std::array<pollfd, 2> sources = {pollfd{kLifeline, POLLIN, 0},
                                     pollfd{children, POLLIN, 0}};
    ::poll(sources.data(), sources.size(), -1);
    std::array<signalfd_siginfo, 16> told;
    (void)!::read(children, told.data(), sizeof told);
    status = reap(child);
    if (!status && sources[0].revents != 0) status = 128 + SIGTERM;
  }
  end_descendants();
  ::_exit(*status);
}

}  // namespace leat
