// Finds the places of a table's paths, so that most of them need no thought.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace leat {

/// The rest of a path, after a prefix, to which a rule applies.
enum class PathRest : std::uint8_t {
  /// Nothing yet: whoever knows all places is asked.
  kUnknown,
  kAny,        ///< All but nothing.
  kPlainPath,  ///< A path that stays as it is: no "", "." or ".." in it.
  kPlainUrl,   ///< Nothing that URLs escape, and no query or fragment.
};

/// Paths that begin with `prefix` lie in `place`, and the rest is their key.
struct PathRule {
  std::string prefix;
  PathRest rest = PathRest::kUnknown;
  std::uint32_t place = 0;
};

/// Rules of which the one with the longest prefix counts. Relative paths have a
/// rule of their own, whose prefix is empty.
///
/// A path that no rule fits is asked about elsewhere
/// (python/leat/_formats/_table/_manifest.py, which has all cases and the
/// errors); the answer may bring one more rule.
///
/// Threads: one at a time.
class PathRules {
 public:
  struct Found {
    std::uint32_t place = 0;
    std::string_view key;  ///< A part of the path.
  };

  /// Adds a rule, or replaces the one with the same prefix.
  void learn(PathRule rule);
  /// nullopt: ask.
  std::optional<Found> find(std::string_view path) const;

 private:
  std::optional<PathRule> relative_;
  std::vector<PathRule> rules_;  ///< The longest prefix first.
};

}  // namespace leat
