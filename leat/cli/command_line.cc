#include "leat/cli/command_line.h"

#include <algorithm>
#include <cerrno>
#include <exception>
#include <ostream>
#include <string>
#include <system_error>
#include <utility>

#ifndef LEAT_VERSION
#error "the build defines LEAT_VERSION"
#endif

namespace leat {
namespace {

using Run = std::function<Result<void>(CommandContext&)>;

struct Choice {
  CLI::App* app;
  Run run;
};

std::string advice_for(const CLI::App& app) {
  for (const CLI::App* chosen : app.get_subcommands()) {
    return "; see leat " + chosen->get_name() + " --help";
  }
  return "; see leat --help";
}

/// What was printed must have arrived: a full disk is not a done command.
ExitCode written(ExitCode code, CommandContext& context) {
  errno = 0;
  context.out.flush();
  if (context.out.good()) return code;
  context.err << "leat: what was printed could not be written to standard "
                 "output"
              << (errno == 0 ? std::string()
                             : ": " + std::generic_category().message(errno))
              << '\n';
  return ExitCode::kFailed;
}

ExitCode explain(const CLI::App& app, const CLI::ParseError& wrong,
                 CommandContext& context) {
  // Asking for help or the version is an "error" to CLI11, whose code is 0.
  if (wrong.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) {
    app.exit(wrong, context.out, context.err);
    return written(ExitCode::kDone, context);
  }
  context.err << "leat: " << wrong.what() << advice_for(app) << '\n';
  return ExitCode::kWrongUsage;
}

ExitCode run(const Run& chosen, CommandContext& context) {
  Result<void> done = chosen(context);
  if (done) return written(ExitCode::kDone, context);
  context.out.flush();
  context.err << "leat: " << done.error().message() << '\n';
  return done.error().code() == ErrorCode::kInvalidArgument
             ? ExitCode::kWrongUsage
             : ExitCode::kFailed;
}

}  // namespace

ExitCode run_command_line(std::vector<std::string> words,
                          std::span<const Command* const> commands,
                          CommandContext& context) {
  CLI::App app("Feeds deep-learning training straight from object storage.",
               "leat");
  app.set_version_flag("--version", "leat " LEAT_VERSION);
  app.require_subcommand(1);
  std::vector<Choice> choices;
  for (const Command* command : commands) {
    CLI::App* sub = app.add_subcommand(std::string(command->name),
                                       std::string(command->summary));
    choices.push_back({sub, command->add(*sub)});
  }
  try {
    std::reverse(words.begin(), words.end());  // CLI11 takes them from the end.
    app.parse(std::move(words));
  } catch (const CLI::ParseError& wrong) {
    return explain(app, wrong, context);
  }
  for (const Choice& choice : choices) {
    if (choice.app->parsed()) return run(choice.run, context);
  }
  context.err << "leat: no command was given; see leat --help\n";
  return ExitCode::kWrongUsage;
}

}  // namespace leat
