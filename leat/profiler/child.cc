#include "leat/profiler/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "leat/base/errors.h"
#include "leat/base/system_error.h"
#include "leat/profiler/keeper.h"
#include "leat/runtime/spawn.h"

namespace leat {
namespace {

using std::chrono_literals::operator""ms;

/// How soon an end or a stop is noticed.
constexpr auto kTick = 10ms;

Error cannot(std::string_view what) {
  return exhausted("{}: {}", what, std::strerror(errno));
}

/// A child that a keeper starts reports here why it could not; nothing once it
/// runs.
int why_not_started(int report) {
  int why = 0;
  ssize_t got = 0;
  do {
    got = ::read(report, &why, sizeof why);
  } while (got < 0 && errno == EINTR);
  return got == sizeof why ? why : 0;
}

/// Our environment, in which `variables` take the place of those of the same
/// names.
std::vector<std::string> environment_with(
    std::span<const std::string> variables) {
  std::vector<std::string> all(variables.begin(), variables.end());
  for (char** one = environ; *one != nullptr; ++one) {
    const std::string_view own(*one);
    const std::string_view name = own.substr(0, own.find('=') + 1);
    if (std::ranges::none_of(variables, [&](const std::string& given) {
          return given.starts_with(name);
        })) {
      all.emplace_back(own);
    }
  }
  return all;
}

/// As exec(3) takes them: the last one null.
std::vector<char*> pointers_to(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (const std::string& word : words) {
    pointers.push_back(const_cast<char*>(word.c_str()));
  }
  pointers.push_back(nullptr);
  return pointers;
}

void await_end_of(pid_t child) {
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace

Result<Child> Child::start(const std::vector<std::string>& words,
                           const std::filesystem::path& log, ChildInput input,
                           int held, std::span<const std::string> variables) {
  const OwnedFd file(
      ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!file) return system_error(errno, log.string());
  std::array<int, 2> lifeline{};
  if (::pipe2(lifeline.data(), O_CLOEXEC) != 0) return cannot("a pipe");
  const OwnedFd lifeline_read(lifeline[0]);
  OwnedFd lifeline_write(lifeline[1]);
  std::array<int, 2> report{};
  if (::pipe2(report.data(), O_CLOEXEC) != 0) return cannot("a pipe");
  const OwnedFd report_read(report[0]);
  OwnedFd report_write(report[1]);
  const std::vector<std::string> environment = environment_with(variables);
  const std::vector<char*> arguments = pointers_to(words);
  const std::vector<char*> environment_pointers = pointers_to(environment);

  const pid_t keeper = ::fork();
  if (keeper < 0) return cannot("starting " + words.front());
  if (keeper == 0) {
    keep({.words = arguments,
          .variables = environment_pointers,
          .log = file.get(),
          .lifeline = lifeline_read.get(),
          .report = report_write.get(),
          .keeps_input_open = input == ChildInput::kOpen,
          .held = held});
  }
  report_write = OwnedFd();
  if (const int why = why_not_started(report_read.get()); why != 0) {
    await_end_of(keeper);
    return invalid("{} cannot be started: {}", words.front(),
                   std::strerror(why));
  }
  return Child(keeper, std::move(lifeline_write));
}

Child::Child(Child&& other) noexcept
    : keeper_(std::exchange(other.keeper_, 0)),
      lifeline_(std::move(other.lifeline_)) {}

Child::~Child() { end(); }

void Child::end() {
  lifeline_ = OwnedFd();
  if (keeper_ != 0) await_end_of(std::exchange(keeper_, 0));
}

Result<int> Child::wait(Nanoseconds limit, const std::stop_token& stop) {
  LEAT_TRY(const End end, wait_for_failure(std::span(this, 1), limit, stop));
  return end.status;
}

void Child::end_all(std::span<Child> children) {
  for (Child& child : children) child.lifeline_ = OwnedFd();
  for (Child& child : children) child.end();
}

Result<Child::End> Child::wait_for_failure(std::span<Child> children,
                                           Nanoseconds limit,
                                           const std::stop_token& stop) {
  const TimePoint until = SteadyClock().now() + limit;
  while (true) {
    bool runs = false;
    for (std::size_t i = 0; i < children.size(); ++i) {
      if (children[i].keeper_ == 0) continue;
      const std::optional<int> status = exit_status_of(children[i].keeper_);
      if (status) children[i].keeper_ = 0;
      if (status.value_or(0) != 0) {
        end_all(children);
        return End{i, *status};
      }
      runs |= !status;
    }
    if (!runs) return End{children.size() - 1, 0};
    if (stop.stop_requested()) {
      end_all(children);
      return Error(ErrorCode::kCancelled, "interrupted");
    }
    if (SteadyClock().now() > until) {
      end_all(children);
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
