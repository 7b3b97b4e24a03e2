// leat COMMAND ...    The program: its signals, its exit code.

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <stop_token>
#include <string>
#include <vector>

#include "leat/cli/command_line.h"
#include "leat/cli/commands.h"
#include "leat/runtime/start_thread.h"
#include "leat/runtime/thread_name.h"

namespace leat {
namespace {

sigset_t ending_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  return signals;
}

/// Turns the first Ctrl-C or SIGTERM into a stop, and lets the second one kill.
/// `stop` is the thread's own copy.
void watch_signals(const std::stop_source& stop) {
  name_this_thread("leat-signals");
  const sigset_t signals = ending_signals();
  int signal = 0;
  if (sigwait(&signals, &signal) != 0) return;
  stop.request_stop();
  if (sigwait(&signals, &signal) != 0) return;
  std::_Exit(128 + signal);
}

/// If the caller closed standard input, output or error, the next socket or
/// file would take its number and receive the output. The files opened here
/// refuse to be written to, so that a write fails and is reported.
void occupy_standard_files() {
  for (const int file : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(file, F_GETFD) == -1) (void)::open("/dev/null", O_RDONLY);
  }
}

bool is_reader_of_output_gone() {
  pollfd output{.fd = STDOUT_FILENO, .events = 0, .revents = 0};
  return ::poll(&output, 1, 0) == 1 && (output.revents & POLLERR) != 0;
}

int run(int argc, char** argv) {
  occupy_standard_files();
  // Blocked before the first thread starts, so that only the watcher hears.
  const sigset_t signals = ending_signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  std::stop_source stop;
  // Waits in sigwait for as long as the process lives: the one thread that
  // nobody joins.
  start_thread([stop] { watch_signals(stop); }).detach();

  CommandContext context{.out = std::cout,
                         .err = std::cerr,
                         .env = process_env(),
                         .stop = stop.get_token(),
                         .is_reader_gone = is_reader_of_output_gone};
  return static_cast<int>(run_command_line(
      std::vector<std::string>(argv + 1, argv + argc), commands(), context));
}

}  // namespace
}  // namespace leat

int main(int argc, char** argv) {
  try {
    return leat::run(argc, argv);
  } catch (const std::exception& error) {  // Such as that no threads are left.
    std::cerr << "leat: " << error.what() << '\n';
    return static_cast<int>(leat::ExitCode::kFailed);
  }
}
