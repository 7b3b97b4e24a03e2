#include "leat/index/label_changes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <span>
#include <string_view>
#include <unordered_set>

namespace leat {
namespace {

using Names = std::vector<std::string>;

constexpr std::size_t kMostNamed = 3;   ///< The rest is counted.
constexpr std::size_t kMostListed = 8;  ///< A longer list is described.

std::string change_of(std::size_t label, const Names& before,
                      const Names& now) {
  const auto found = std::ranges::find(now, before[label]);
  if (found != now.end()) {
    return fmt::format("class '{}' has label {} now, and had {}", before[label],
                       found - now.begin(), label);
  }
  return fmt::format("label {} is class '{}' now, and was '{}', which is gone",
                     label, now[label], before[label]);
}

std::string quoted(std::span<const std::string> names) {
  Names all;
  for (const std::string& name : names) {
    all.push_back(fmt::format("'{}'", name));
  }
  return fmt::format("{}", fmt::join(all, ", "));
}

std::string more(std::size_t count, std::string_view what) {
  if (count <= kMostNamed) return "";
  return fmt::format(" and {} more{}", count - kMostNamed, what);
}

/// The list that keeps the former labels, and numbers new classes behind them.
std::string list_of(const Names& before, const Names& now) {
  const std::unordered_set<std::string> known(before.begin(), before.end());
  Names added;
  std::ranges::copy_if(now, std::back_inserter(added),
                       [&](const auto& name) { return !known.contains(name); });
  if (before.size() + added.size() <= kMostListed) {
    Names all = before;
    all.insert(all.end(), added.begin(), added.end());
    return fmt::format("classes=[{}]", quoted(all));
  }
  std::string list =
      fmt::format("classes= the {} former names in their order", before.size());
  if (!added.empty()) {
    const std::size_t named = std::min(added.size(), kMostNamed);
    list +=
        fmt::format(", and then {}{}", quoted(std::span(added).first(named)),
                    more(added.size(), ""));
  }
  return list;
}

}  // namespace

std::string label_changes(const std::vector<std::string>& before,
                          const std::vector<std::string>& now) {
  Names changes;
  std::size_t count = 0;
  for (std::size_t i = 0; i < std::min(before.size(), now.size()); ++i) {
    if (before[i] == now[i]) continue;
    if (++count <= kMostNamed) changes.push_back(change_of(i, before, now));
  }
  if (count == 0) return "";
  return fmt::format(
      "{}{}: a model that learnt the former labels is wrong about these; to "
      "keep them, give leat.Dataset {}",
      fmt::join(changes, ", "), more(count, " labels are other classes"),
      list_of(before, now));
}

}  // namespace leat
