#include "leat/codec/json/json_path.h"

#include <fmt/format.h>

#include <optional>

#include "leat/base/errors.h"
#include "leat/base/text.h"

namespace leat {
namespace {

constexpr std::size_t kMostSteps = 64;

/// Takes one step after another off the front of a path.
class PathReader {
 public:
  explicit PathReader(std::string_view text) : rest_(text) {}

  bool is_done() const { return rest_.empty(); }
  std::string_view rest() const { return rest_; }

  std::optional<JsonStep> take(bool is_first) {
    if (rest_.starts_with('[')) return take_bracket();
    if (!is_first) {
      if (!rest_.starts_with('.')) return std::nullopt;
      rest_.remove_prefix(1);
    }
    const std::string_view key = rest_.substr(0, rest_.find_first_of(".[]"));
    if (key.empty()) return std::nullopt;
    rest_.remove_prefix(key.size());
    return JsonStep(std::string(key));
  }

 private:
  std::optional<JsonStep> take_bracket() {
    std::string_view inside = rest_.substr(1);
    if (inside.starts_with('"')) {
      const std::size_t end = inside.find("\"]", 1);
      if (end == std::string_view::npos) return std::nullopt;
      rest_ = inside.substr(end + 2);
      return JsonStep(std::string(inside.substr(1, end - 1)));
    }
    const std::size_t end = inside.find(']');
    if (end == std::string_view::npos) return std::nullopt;
    rest_ = inside.substr(end + 1);
    const auto index = number_from<std::uint64_t>(inside.substr(0, end));
    if (!index) return std::nullopt;
    return JsonStep(*index);
  }

  std::string_view rest_;
};

}  // namespace

Result<JsonPath> parse_json_path(std::string_view text) {
  PathReader reader(text);
  JsonPath path;
  while (!reader.is_done()) {
    const std::string_view rest = reader.rest();
    std::optional<JsonStep> step = reader.take(path.empty());
    if (!step || path.size() == kMostSteps) {
      return invalid(
          "path=\"{}\" is no path at \"{}\"; write it as a.b[0] or a[\"b.c\"], "
          "at most {} steps",
          text, rest, kMostSteps);
    }
    path.push_back(*std::move(step));
  }
  return path;
}

std::string to_string(const JsonPath& path) {
  std::string text;
  for (const JsonStep& step : path) {
    if (const auto* index = std::get_if<std::uint64_t>(&step)) {
      text += fmt::format("[{}]", *index);
      continue;
    }
    const std::string& key = std::get<std::string>(step);
    if (key.empty() || key.find_first_of(".[]") != std::string::npos) {
      text += fmt::format("[\"{}\"]", key);
    } else {
      text += (text.empty() ? "" : ".") + key;
    }
  }
  return text;
}

}  // namespace leat
