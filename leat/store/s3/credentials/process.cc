#include "leat/store/s3/credentials/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <utility>

#include "leat/base/errors.h"
#include "leat/base/owned_fd.h"
#include "leat/base/units.h"
#include "leat/runtime/spawn.h"

namespace leat {
namespace {

/// How soon a stop, the end of the time or of the child is noticed.
constexpr int kTickMilliseconds = 20;

struct Pipe {
  OwnedFd read_end;
  OwnedFd write_end;
};

Result<Pipe> open_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return exhausted("opening a pipe: {}", std::strerror(errno));
  }
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return Pipe{OwnedFd(ends[0]), OwnedFd(ends[1])};
}

/// A child that is killed unless it has ended.
class Child {
 public:
  explicit Child(pid_t pid) : pid_(pid) {}
  ~Child() {
    if (has_ended_) return;
    ::kill(pid_, SIGKILL);
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  bool has_ended() {
    if (has_ended_) return true;
    const std::optional<int> status = exit_status_of(pid_);
    if (!status) return false;
    exit_status_ = *status;
    return has_ended_ = true;
  }
  int exit_status() const { return exit_status_; }

 private:
  const pid_t pid_;
  bool has_ended_ = false;
  int exit_status_ = 0;
};

/// The end of a pipe that is read.
struct Source {
  int descriptor;
  std::string* into;
  std::size_t most_bytes;  ///< Kept; the rest is dropped.
  bool is_open = true;

  /// Reads the bytes that are there, but stops often enough to check the time.
  void read_some() {
    std::array<char, 4096> piece;
    for (int i = 0; i < 64 && is_open; ++i) {
      const ssize_t got = ::read(descriptor, piece.data(), piece.size());
      if (got < 0 && errno == EINTR) continue;
      if (got < 0 && errno == EAGAIN) return;
      is_open = got > 0;
      if (!is_open) return;
      const std::size_t room = most_bytes - into->size();
      into->append(piece.data(), std::min(room, static_cast<std::size_t>(got)));
    }
  }
  pollfd wanted() const { return {is_open ? descriptor : -1, POLLIN, 0}; }
};

}  // namespace

Result<std::vector<std::string>> split_command(std::string_view command) {
  std::vector<std::string> words;
  bool is_in_word = false;
  bool is_cut = false;
  char quote = '\0';
  for (std::size_t i = 0; i < command.size(); ++i) {
    const char c = command[i];
    if (quote == '\0' && (c == ' ' || c == '\t' || c == '\n' || c == '\r')) {
      is_in_word = false;
      continue;
    }
    if (!is_in_word) words.emplace_back();
    is_in_word = true;
    if (quote == '\0' && (c == '"' || c == '\'')) {
      quote = c;
    } else if (c == quote) {
      quote = '\0';
    } else if (c == '\\' && quote != '\'') {
      is_cut = ++i == command.size();
      if (is_cut) break;
      // Within double quotes it escapes only what would end them, and itself.
      if (quote == '"' && command[i] != '"' && command[i] != '\\') {
        words.back() += '\\';
      }
      words.back() += command[i];
      continue;
    } else {
      words.back() += c;
    }
  }
  if (is_cut || quote != '\0' || words.empty() || words.front().empty()) {
    return invalid(
        words.empty()
            ? "the command is empty"
            : "the command has a quote or backslash that does not end");
  }
  return words;
}

Result<ProcessOutput> run_process(const std::vector<std::string>& command,
                                  const ProcessLimits& limits,
                                  const std::stop_token& stop) {
  LEAT_TRY(Pipe output, open_pipe());
  LEAT_TRY(Pipe errors, open_pipe());
  LEAT_TRY(const pid_t pid, spawn(command, {.output = output.write_end.get(),
                                            .errors = errors.write_end.get()}));
  output.write_end = OwnedFd();
  errors.write_end = OwnedFd();
  Child child(pid);
  ProcessOutput result;
  const SteadyClock clock;
  const TimePoint deadline = clock.now() + limits.timeout;
  std::array<Source, 2> sources = {
      Source{output.read_end.get(), &result.output,
             limits.most_output_bytes + 1},
      Source{errors.read_end.get(), &result.errors, limits.most_output_bytes}};
  while (true) {
    // Checked before reading: all output before the end is then there.
    const bool has_ended = child.has_ended();
    for (Source& source : sources) source.read_some();
    if (result.output.size() > limits.most_output_bytes) {
      return exhausted("it prints more than " +
                       format_bytes(limits.most_output_bytes));
    }
    if (has_ended) break;
    if (stop.stop_requested()) {
      return Error(ErrorCode::kCancelled, "cancelled");
    }
    if (clock.now() >= deadline) {
      return Error(ErrorCode::kDeadlineExceeded,
                   "it did not end within " + format_duration(limits.timeout));
    }
    std::array<pollfd, 2> wanted = {sources[0].wanted(), sources[1].wanted()};
    ::poll(wanted.data(), wanted.size(), kTickMilliseconds);
  }
  result.exit_status = child.exit_status();
  return result;
}

}  // namespace leat
