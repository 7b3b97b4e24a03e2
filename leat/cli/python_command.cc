#include "leat/cli/python_command.h"

#include <pthread.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <ostream>
#include <string>
#include <system_error>
#include <vector>

#include "leat/base/errors.h"

namespace leat {
namespace {

using Path = std::filesystem::path;

// Nothing is imported from the working folder, whose data may be called
// "leat" or "numpy".
constexpr const char* kProgram =
    "import sys\n"
    "sys.path[:] = [place for place in sys.path if place]\n"
    "try:\n"
    "  from leat._commands import main\n"
    "except KeyboardInterrupt:\n"
    "  sys.exit('leat: stopped')\n"
    "main()";

/// The folder that holds the package of this program, in a build tree or in a
/// wheel; nullopt if it is elsewhere.
std::optional<Path> package_root() {
  std::error_code failed;
  const Path program = std::filesystem::read_symlink("/proc/self/exe", failed);
  const Path above = program.parent_path().parent_path();
  if (std::filesystem::exists(above / "_commands.py", failed)) {
    return above.parent_path();
  }
  if (std::filesystem::exists(above / "python/leat/_commands.py", failed)) {
    return above / "python";
  }
  return std::nullopt;
}

/// main() blocks signals for a thread of this program, which ends now.
void give_signals_back() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_UNBLOCK, &all, nullptr);
  std::signal(SIGPIPE, SIG_DFL);
}

}  // namespace

Error become_python(std::string_view module, std::span<const std::string> words,
                    CommandContext& context) {
  // The console script of the package names its own interpreter.
  const auto named = value_of(context.env, "LEAT_PYTHON");
  const std::string python = named.value_or("python3");
  if (const auto root = package_root(); root && !named) {
    const auto others = value_of(context.env, "PYTHONPATH");
    const std::string places =
        root->string() + (others ? ":" + *others : std::string());
    ::setenv("PYTHONPATH", places.c_str(), 1);
  }
  std::vector<std::string> all = {python, "-c", kProgram, std::string(module)};
  all.insert(all.end(), words.begin(), words.end());
  std::vector<char*> arguments;
  arguments.reserve(all.size() + 1);
  for (std::string& word : all) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  context.out.flush();
  give_signals_back();
  ::execvp(python.c_str(), arguments.data());
  return not_found(
      "leat {} is written in Python, and {} cannot be started ({}); name an "
      "interpreter in LEAT_PYTHON",
      words.front(), python, std::generic_category().message(errno));
}

}  // namespace leat
