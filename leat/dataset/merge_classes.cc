#include "leat/dataset/merge_classes.h"

#include <algorithm>
#include <map>

#include "leat/base/check.h"
#include "leat/base/errors.h"

namespace leat {
namespace {

using Parts = std::span<const std::shared_ptr<const Catalogue>>;

Result<void> check_named(Parts parts) {
  const auto is_named = [](const auto& part) {
    return !part->classes().empty();
  };
  const auto named = std::ranges::find_if(parts, is_named);
  const auto bare = std::ranges::find_if_not(parts, is_named);
  if (named == parts.end() || bare == parts.end()) return {};
  return invalid(
      "cannot join part {}: its labels are bare numbers, and those of part {} "
      "have names ('{}' is the first), so nobody knows which mean the same; "
      "name them with classes= of from_manifest",
      bare - parts.begin(), named - parts.begin(), (*named)->classes().front());
}

/// In order of first appearance.
std::vector<std::string> all_names(Parts parts) {
  std::vector<std::string> names;
  std::map<std::string_view, bool> is_known;
  for (const auto& part : parts) {
    for (const std::string& name : part->classes()) {
      if (is_known.emplace(name, true).second) names.push_back(name);
    }
  }
  return names;
}

}  // namespace

Result<MergedClasses> merge_classes(Parts parts) {
  LEAT_CHECK(!parts.empty());
  LEAT_TRY_VOID(check_named(parts));
  MergedClasses merged;
  merged.numbers.resize(parts.size());
  const auto classes_of = [](const auto& part) -> const auto& {
    return part->classes();
  };
  if (std::ranges::all_of(parts, [&](const auto& part) {
        return part->classes() == parts.front()->classes();
      })) {
    merged.names = parts.front()->classes();
    return merged;
  }
  merged.names = all_names(parts);
  if (std::ranges::all_of(
          parts,
          [](const auto& names) { return std::ranges::is_sorted(names); },
          classes_of)) {
    std::ranges::sort(merged.names);
  }
  std::map<std::string_view, std::int64_t> number_of;
  for (const std::string& name : merged.names) {
    number_of.emplace(name, static_cast<std::int64_t>(number_of.size()));
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    for (const std::string& name : parts[i]->classes()) {
      merged.numbers[i].push_back(number_of.at(name));
    }
  }
  return merged;
}

}  // namespace leat
