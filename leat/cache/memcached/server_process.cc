#include "leat/cache/memcached/server_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <utility>
#include <vector>

#include "leat/base/clock.h"
#include "leat/base/errors.h"
#include "leat/base/units.h"
#include "leat/cache/memcached/server_name.h"
#include "leat/runtime/log.h"
#include "leat/runtime/start_thread.h"
#include "leat/runtime/thread_name.h"

namespace leat {
namespace {

/// Twice the largest value, which memcached insists on (-I 8m).
constexpr std::uint64_t kLeastMemory = 16 << 20;
constexpr std::chrono::milliseconds kBetweenLooks{5};
constexpr std::chrono::seconds kBeforeAnother{1};

Result<std::string> find_in_path(const Env& env) {
  const std::string path = value_of(env, "PATH").value_or("/usr/bin:/bin");
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t end = std::min(path.find(':', at), path.size());
    const std::string program = path.substr(at, end - at) + "/memcached";
    if (access(program.c_str(), X_OK) == 0) return program;
    at = end + 1;
  }
  return not_found(
      "there is no memcached in PATH to keep samples for peers with: install "
      "it (apt install memcached), or name servers that run, "
      "peers=[\"host:port\", ...]");
}

std::vector<std::string> arguments(const ServerProcessOptions& options) {
  std::vector<std::string> list = {
      "memcached", "-M", "-I", "8m", "-U", "0",  //
      "-l", options.address,
      // -1: any free port.
      "-p", options.port == 0 ? "-1" : std::to_string(options.port), "-m",
      std::to_string(options.memory_bytes >> 20), "-t",
      std::to_string(std::max<std::uint32_t>(options.threads, 1)), "-c",
      std::to_string(options.connections),
      // Slab sizes closer together than by default (1.25): a value wastes a
      // twentieth of its chunk on average instead of a tenth.
      "-n", "480", "-f", "1.12"};
  if (geteuid() == 0) {
    // The kernel would not kill a process of another user with us.
    list.insert(list.end(), {"-u", "root"});
  }
  return list;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> list;
  list.reserve(texts.size() + 1);
  for (std::string& text : texts) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

/// Runs in the child: only calls that are safe between fork() and exec().
[[noreturn]] void become(const char* program, char* const* arguments,
                         char* const* environment, const char* log,
                         pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);  // The parent is gone already.
  setsid();                             // Ctrl-C is for us; we then end it.
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const int nothing = open("/dev/null", O_RDWR);
  const int said = open(log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  dup2(nothing, STDIN_FILENO);
  dup2(nothing, STDOUT_FILENO);
  dup2(said, STDERR_FILENO);
  (void)syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC);
  execve(program, arguments, environment);
  _exit(127);
}

/// Waits for a child to end, and describes how it did. The child is not reaped,
/// so that its number stays its own; but if SIGCHLD is ignored, or somebody
/// waits for any child, it has been reaped already.
std::string end_of(pid_t child) {
  siginfo_t info{};
  while (waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT) !=
         0) {
    if (errno != EINTR) return "somebody else has heard how";
  }
  return fmt::format("{} {}", info.si_code == CLD_EXITED ? "code" : "signal",
                     info.si_status);
}

std::string read_text(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

Result<std::unique_ptr<ServerProcess>> ServerProcess::start(
    const ServerProcessOptions& options, const Env& env) {
  if (options.memory_bytes < kLeastMemory) {
    return invalid("a memcached for peers takes at least {}, not {}",
                   format_bytes(kLeastMemory),
                   format_bytes(options.memory_bytes));
  }
  LEAT_TRY(std::string program, find_in_path(env));
  const std::string base = value_of(env, "TMPDIR").value_or("/tmp");
  ServerFolder::sweep(base);
  LEAT_TRY(ServerFolder folder, ServerFolder::make(base));
  std::unique_ptr<ServerProcess> server(
      new ServerProcess(options, std::move(program), std::move(folder)));
  LEAT_TRY_VOID(server->wait_until_it_listens());
  return server;
}

ServerProcess::ServerProcess(ServerProcessOptions options, std::string program,
                             ServerFolder folder)
    : options_(std::move(options)),
      program_(std::move(program)),
      folder_(std::move(folder)),
      owner_(getpid()),
      keeper_(
          start_thread([this](const std::stop_token& stop) { keep(stop); })) {}

ServerProcess::~ServerProcess() {
  if (getpid() != owner_) {
    keeper_.detach();  // This process has no such thread.
    return;
  }
  keeper_.request_stop();
  {
    const MutexLock lock(mutex_);
    if (pid_ > 0) kill(pid_, SIGKILL);  // Not reaped yet, so still the child's.
  }
  keeper_.join();
  ServerFolder::remove(folder_.path);
}

pid_t ServerProcess::pid() const {
  const MutexLock lock(mutex_);
  return pid_;
}

void ServerProcess::keep(const std::stop_token& stop) {
  name_this_thread("leat-memcached");
  while (!stop.stop_requested()) {
    spawn(stop);
    const pid_t child = pid();
    const std::string how = child > 0 ? end_of(child) : "it was never there";
    MutexLock lock(mutex_);
    pid_ = 0;
    ++ends_;
    changed_.notify_all();
    if (child > 0) waitpid(child, nullptr, 0);
    if (stop.stop_requested() || options_.port == 0) return;
    log_warning(fmt::format(
        "memcached at {} has ended ({}){}; it is started again, empty", name_,
        how, what_it_said()));
    changed_.wait_for(lock, stop, kBeforeAnother, [] { return false; });
  }
}

void ServerProcess::spawn(const std::stop_token& stop) {
  std::vector<std::string> texts = arguments(options_);
  std::vector<std::string> variables = {
      "MEMCACHED_PORT_FILENAME=" + folder_.path + "/port"};
  const std::vector<char*> argv = pointers(texts);
  const std::vector<char*> environment = pointers(variables);
  const std::string log = folder_.path + "/said";
  const MutexLock lock(mutex_);
  // Under the lock: destruction kills any child started before it took that.
  if (stop.stop_requested()) return;
  const pid_t child = fork();
  if (child == 0) {
    become(program_.c_str(), argv.data(), environment.data(), log.c_str(),
           owner_);
  }
  pid_ = std::max(child, 0);  // -1 would signal every process.
}

std::string ServerProcess::what_it_said() const {
  std::string said = read_text(folder_.path + "/said").substr(0, 500);
  while (said.ends_with('\n')) said.pop_back();
  return said.empty() ? said : ": " + said;
}

Result<void> ServerProcess::wait_until_it_listens() {
  // memcached renames the file into place once it listens.
  constexpr std::string_view kBefore = "TCP INET: ";
  const TimePoint give_up = SteadyClock().now() + options_.patience;
  MutexLock lock(mutex_);
  while (SteadyClock().now() < give_up && ends_ == 0) {
    const std::string ports = read_text(folder_.path + "/port");
    const std::size_t at = ports.find(kBefore);
    if (at != std::string::npos) {
      options_.port = static_cast<std::uint16_t>(
          std::strtoul(ports.c_str() + at + kBefore.size(), nullptr, 10));
      name_ =
          ServerName{.host = options_.address, .port = options_.port}.text();
      return {};
    }
    changed_.wait_for(lock, kBetweenLooks);
  }
  return unavailable("memcached does not listen on {}{}", options_.address,
                     what_it_said());
}

}  // namespace leat
