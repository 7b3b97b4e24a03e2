#include "leat/profiler/node_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "leat/base/text.h"
#include "leat/runtime/launcher.h"

namespace leat {
namespace {

constexpr std::size_t kMostNodes = 10'000;

Error bad_list(std::string_view list, std::string_view why) {
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("the list of nodes \"{}\" {}: write one such as "
                           "node[01-03,07],gpu5",
                           list, why));
}

/// The items of "a,b[1,2],c", which commas in brackets do not part. None where
/// brackets do not match.
std::optional<std::vector<std::string_view>> items_of(std::string_view list) {
  std::vector<std::string_view> items;
  std::size_t begin = 0;
  bool is_inside = false;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i] == (is_inside ? '[' : ']')) return std::nullopt;
    if (list[i] == '[' || list[i] == ']') is_inside = !is_inside;
    if (list[i] != ',' || is_inside) continue;
    items.push_back(list.substr(begin, i - begin));
    begin = i + 1;
  }
  if (is_inside) return std::nullopt;
  items.push_back(list.substr(begin));
  return items;
}

/// "01" to "03": 01, 02, 03. None if it is not a range, or a long one.
std::optional<std::vector<std::string>> numbers_in(std::string_view range) {
  const std::size_t dash = range.find('-');
  const std::string_view low = range.substr(0, dash);
  const std::string_view high =
      dash == std::string_view::npos ? low : range.substr(dash + 1);
  const auto first = number_from<std::uint32_t>(low);
  const auto last = number_from<std::uint32_t>(high);
  if (!first || !last || *last < *first || *last - *first >= kMostNodes) {
    return std::nullopt;
  }
  std::vector<std::string> numbers;
  for (std::uint32_t number = *first; number <= *last; ++number) {
    numbers.push_back(fmt::format("{:0{}}", number, low.size()));
  }
  return numbers;
}

/// "rack[1-2]node[1-4]" and so on: all names that it stands for.
std::optional<std::vector<std::string>> names_in(std::string_view item) {
  std::vector<std::string> names = {""};
  while (!item.empty()) {
    const std::size_t open = std::min(item.find('['), item.size());
    for (std::string& name : names) name += item.substr(0, open);
    item.remove_prefix(open);
    if (item.empty()) break;
    const std::size_t close = item.find(']');
    const auto ranges = items_of(item.substr(1, close - 1));
    if (!ranges) return std::nullopt;
    std::vector<std::string> all_numbers;
    for (const std::string_view range : *ranges) {
      const auto numbers = numbers_in(range);
      if (!numbers) return std::nullopt;
      all_numbers.insert(all_numbers.end(), numbers->begin(), numbers->end());
      if (names.size() * all_numbers.size() > kMostNodes) return std::nullopt;
    }
    std::vector<std::string> longer;
    longer.reserve(names.size() * all_numbers.size());
    for (const std::string& name : names) {
      for (const std::string& number : all_numbers) {
        longer.push_back(name + number);
      }
    }
    names = std::move(longer);
    item.remove_prefix(close + 1);
  }
  return names;
}

/// The name of a host, maybe with a user; never an option of srun or ssh.
bool is_name(std::string_view name) {
  return !name.empty() && name.front() != '-' &&
         std::ranges::all_of(name, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                  (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_' ||
                  c == '@';
         });
}

std::vector<std::string> srun_words(const std::string& node,
                                    std::optional<std::uint32_t> cores) {
  std::vector<std::string> words = {"srun", "--nodes=1", "--ntasks=1",
                                    "--nodelist=" + node,
                                    // Beside other steps, with their resources.
                                    "--overlap", "--mem=0",
                                    // A user's own may be to pass nothing on.
                                    "--export=ALL", "--cpu-bind=none"};
  // A step of one task has one core where nobody says otherwise.
  if (cores) words.push_back(fmt::format("--cpus-per-task={}", *cores));
  return words;
}

Result<NodeCommands> commands_in_allocation(const Env& env) {
  const auto list = value_of(env, "SLURM_JOB_NODELIST");
  if (!list) {
    return Error(ErrorCode::kInvalidArgument,
                 "--nodes slurm: SLURM_JOB_NODELIST is not set, so this is no "
                 "allocation of Slurm's: run it in one (salloc, sbatch), or "
                 "name hosts that ssh reaches: --nodes a,b");
  }
  LEAT_TRY(const auto names, parse_node_list(*list));
  const auto cores = value_of(env, "SLURM_JOB_CPUS_PER_NODE");
  NodeCommands commands{.prefixes = {}, .first_address = names.front()};
  for (std::uint32_t node = 0; node < names.size(); ++node) {
    commands.prefixes.push_back(
        srun_words(names[node], cores ? count_of_node(*cores, node)
                                      : std::optional<std::uint32_t>()));
  }
  return commands;
}

}  // namespace

Result<std::vector<std::string>> parse_node_list(std::string_view list) {
  const auto items = items_of(list);
  if (!items) return bad_list(list, "has brackets that do not match");
  std::vector<std::string> nodes;
  for (const std::string_view item : *items) {
    const auto names = names_in(item);
    if (!names) {
      return bad_list(list, fmt::format("has \"{}\", whose brackets hold what "
                                        "is no range of numbers, or a huge one",
                                        item));
    }
    for (const std::string& name : *names) {
      if (!is_name(name)) {
        return bad_list(list, fmt::format("has \"{}\", which is no name of a "
                                          "node",
                                          name));
      }
      nodes.push_back(name);
    }
    if (nodes.size() > kMostNodes) return bad_list(list, "is too long");
  }
  return nodes;
}

Result<NodeCommands> commands_on_nodes(std::string_view nodes, const Env& env) {
  if (nodes == "slurm") return commands_in_allocation(env);
  LEAT_TRY(const auto names, parse_node_list(nodes));
  NodeCommands commands{
      .prefixes = {},
      .first_address = names.front().substr(names.front().rfind('@') + 1)};
  for (const std::string& name : names) {
    // It cannot ask for a password here: it has no terminal.
    commands.prefixes.push_back({"ssh", "-o", "BatchMode=yes", name});
  }
  return commands;
}

}  // namespace leat
