#include "leat/index/path_rules.h"

#include <algorithm>
#include <utility>

namespace leat {
namespace {

bool is_plain_path(std::string_view path) {
  if (path.find('\0') != std::string_view::npos) return false;
  for (;;) {
    const std::size_t slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    if (part.empty() || part == "." || part == "..") return false;
    if (slash == std::string_view::npos) return true;
    path.remove_prefix(slash + 1);
  }
}

bool fits(std::string_view rest, PathRest form) {
  switch (form) {
    case PathRest::kUnknown:
      return false;
    case PathRest::kAny:
      return !rest.empty();
    case PathRest::kPlainPath:
      return is_plain_path(rest);
    case PathRest::kPlainUrl:
      return !rest.empty() &&
             rest.find_first_of("%?#") == std::string_view::npos;
  }
  return false;
}

}  // namespace

void PathRules::learn(PathRule rule) {
  if (rule.prefix.empty()) {
    relative_ = std::move(rule);
    return;
  }
  std::erase_if(rules_, [&](const PathRule& other) {
    return other.prefix == rule.prefix;
  });
  const auto after = std::ranges::find_if(rules_, [&](const PathRule& other) {
    return other.prefix.size() < rule.prefix.size();
  });
  rules_.insert(after, std::move(rule));
}

std::optional<PathRules::Found> PathRules::find(std::string_view path) const {
  const bool is_relative =
      path.find("://") == std::string_view::npos && !path.starts_with('/');
  if (is_relative) {
    if (!relative_ || !fits(path, relative_->rest)) return std::nullopt;
    return Found{.place = relative_->place, .key = path};
  }
  for (const PathRule& rule : rules_) {
    if (!path.starts_with(rule.prefix)) continue;
    const std::string_view rest = path.substr(rule.prefix.size());
    if (!fits(rest, rule.rest)) return std::nullopt;
    return Found{.place = rule.place, .key = rest};
  }
  return std::nullopt;
}

}  // namespace leat
