#include "leat/cli/command_line.h"

#include <algorithm>
#include <cerrno>
#include <exception>
#include <iomanip>
#include <ostream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "leat/cli/nearest_word.h"
#include "leat/cli/python_command.h"
#include "leat/cli/terminal_text.h"

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

bool has_lost_reader(const CommandContext& context) {
  return !context.out.good() && context.is_reader_gone != nullptr &&
         context.is_reader_gone();
}

/// Checks that the output has arrived: with a full disk, the command has
/// failed.
ExitCode written(ExitCode code, CommandContext& context) {
  errno = 0;
  context.out.flush();
  if (context.out.good()) return code;
  if (has_lost_reader(context)) return ExitCode::kReaderGone;
  context.err << "leat: what was printed could not be written to standard "
                 "output"
              << (errno == 0 ? std::string()
                             : ": " + std::generic_category().message(errno))
              << '\n';
  return ExitCode::kFailed;
}

ExitCode explain(const CLI::App& app, const CLI::ParseError& wrong,
                 CommandContext& context) {
  // A request for help or the version is an "error" to CLI11, whose code is 0.
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
  if (has_lost_reader(context)) return ExitCode::kReaderGone;
  context.err << "leat: " << lines_for_terminal(done.error().message()) << '\n';
  return done.error().code() == ErrorCode::kInvalidArgument
             ? ExitCode::kWrongUsage
             : ExitCode::kFailed;
}

ExitCode print_overview(std::span<const CommandGroup> groups,
                        CommandContext& context) {
  context.out << "leat " LEAT_VERSION
                 ": feeds deep-learning training straight from object "
                 "storage\n\nleat COMMAND [OPTIONS]\n";
  for (const CommandGroup& group : groups) {
    context.out << '\n' << group.purpose << ":\n";
    for (const Command* command : group.commands) {
      context.out << "  " << std::left << std::setw(12) << command->name
                  << command->summary << '\n';
    }
  }
  context.out << "\nleat COMMAND --help says how, with an example.\n";
  return written(ExitCode::kDone, context);
}

/// Runs the command of that name that takes its words as they are; null if
/// there is none.
Run taker_of(const std::vector<std::string>& words,
             std::span<const CommandGroup> groups) {
  for (const CommandGroup& group : groups) {
    for (const Command* command : group.commands) {
      if (words.front() != command->name) continue;
      if (!command->python.empty()) {
        return [&words, command](CommandContext& context) -> Result<void> {
          return become_python(command->python, words, context);
        };
      }
      if (command->take_words != nullptr) {
        return [&words, command](CommandContext& context) {
          return command->take_words(words, context);
        };
      }
    }
  }
  return nullptr;
}

/// Why a command line cannot begin with the first word; nothing if it can.
std::string why_no_command(const std::string& first,
                           std::span<const CommandGroup> groups) {
  std::vector<std::string_view> names;
  for (const CommandGroup& group : groups) {
    for (const Command* command : group.commands) {
      if (first == command->name) return "";
      names.push_back(command->name);
    }
  }
  if (first.starts_with('-')) {
    if (first == "--help" || first == "-h" || first == "--version") return "";
    return "'" + first +
           "' stands before a command: name the command first; see leat "
           "--help";
  }
  const std::string_view nearest = nearest_word(first, names);
  return "no command '" + first + "'" +
         (nearest.empty() ? "; see leat --help"
                          : "; did you mean '" + std::string(nearest) + "'?");
}

}  // namespace

ExitCode run_command_line(std::vector<std::string> words,
                          std::span<const CommandGroup> groups,
                          CommandContext& context) {
  if (words.empty()) return print_overview(groups, context);
  if (const std::string why = why_no_command(words.front(), groups);
      !why.empty()) {
    context.err << "leat: " << why << '\n';
    return ExitCode::kWrongUsage;
  }
  if (const Run taker = taker_of(words, groups)) return run(taker, context);
  CLI::App app("Feeds deep-learning training straight from object storage.",
               "leat");
  app.set_version_flag("--version", "leat " LEAT_VERSION);
  app.require_subcommand(1);
  std::vector<Choice> choices;
  for (const CommandGroup& group : groups) {
    for (const Command* command : group.commands) {
      CLI::App* sub = app.add_subcommand(std::string(command->name),
                                         std::string(command->summary));
      sub->group(std::string(group.purpose));
      if (command->add == nullptr) continue;
      choices.push_back({sub, command->add(*sub)});
    }
  }
  try {
    std::reverse(words.begin(), words.end());  // CLI11 takes them from the end.
    app.parse(std::move(words));
  } catch (const CLI::ParseError& wrong) {
    return explain(app, wrong, context);
  }
  const auto chosen = std::ranges::find_if(
      choices, [](const Choice& choice) { return choice.app->parsed(); });
  return run(chosen->run, context);
}

}  // namespace leat
