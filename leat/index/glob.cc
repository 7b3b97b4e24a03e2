#include "leat/index/glob.h"

#include <cstddef>

#include "leat/base/errors.h"
#include "leat/index/brace_expansion.h"

namespace leat {
namespace {

constexpr std::string_view kAnyParts = "**";

template <class Text>
std::vector<Text> cut(std::string_view text) {
  std::vector<Text> parts;
  std::size_t begin = 0;
  while (true) {
    const std::size_t slash = text.find('/', begin);
    parts.push_back(Text(text.substr(begin, slash - begin)));
    if (slash == std::string_view::npos) return parts;
    begin = slash + 1;
  }
}

/// The end of the set that begins at `open`; npos if there is no set: a bracket
/// that nothing closes stands for itself. `last` is the last closing bracket.
std::size_t end_of_set(std::string_view pattern, std::size_t open,
                       std::size_t last) {
  if (last == std::string_view::npos || open > last) {
    return std::string_view::npos;
  }
  std::size_t at = open + 1;
  if (at < pattern.size() && pattern[at] == '!') ++at;
  return pattern.find(']', at + 1);
}

bool is_in_set(std::string_view set, char c) {
  const bool is_negated = set.starts_with('!');
  if (is_negated) set.remove_prefix(1);
  const auto byte = static_cast<unsigned char>(c);
  bool is_in = false;
  for (std::size_t i = 0; i < set.size(); ++i) {
    const auto low = static_cast<unsigned char>(set[i]);
    auto high = low;
    if (i + 2 < set.size() && set[i + 1] == '-') {
      high = static_cast<unsigned char>(set[i + 2]);
      i += 2;
    }
    is_in |= low <= byte && byte <= high;
  }
  return is_in != is_negated;
}

/// Matches one character; says where the pattern goes on, npos if it does not.
std::size_t after_one(std::string_view pattern, std::size_t at, char c,
                      std::size_t last_close) {
  if (at == pattern.size()) return std::string_view::npos;
  if (pattern[at] == '?') return at + 1;
  if (pattern[at] == '[') {
    if (const std::size_t end = end_of_set(pattern, at, last_close);
        end != std::string_view::npos) {
      return is_in_set(pattern.substr(at + 1, end - at - 1), c)
                 ? end + 1
                 : std::string_view::npos;
    }
  }
  return pattern[at] == c ? at + 1 : std::string_view::npos;
}

/// If a star has let go too early, the last one takes one more character.
/// Earlier stars need not be looked at again.
bool part_matches(std::string_view pattern, std::string_view text) {
  constexpr std::size_t kNone = std::string_view::npos;
  std::size_t p = 0;
  std::size_t t = 0;
  std::size_t star = kNone;
  std::size_t taken = 0;
  const std::size_t last_close = pattern.rfind(']');
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      taken = t;
      continue;
    }
    const std::size_t next = after_one(pattern, p, text[t], last_close);
    if (next != kNone) {
      p = next;
      ++t;
    } else if (star != kNone) {
      p = star + 1;
      t = ++taken;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace

bool has_wildcards(std::string_view text) {
  return text.find_first_of("*?[") != std::string_view::npos;
}

Result<Glob> Glob::parse(std::string_view pattern) {
  if (pattern.empty() || pattern.size() > kMostPatternBytes) {
    return invalid("a pattern of names has {} bytes; it has 1 to {}",
                   pattern.size(), kMostPatternBytes);
  }
  Glob glob;
  glob.text_ = pattern;
  glob.parts_ = cut<std::string>(pattern);
  return glob;
}

bool Glob::matches(std::string_view key) const {
  constexpr std::size_t kNone = std::string_view::npos;
  const std::vector<std::string_view> parts = cut<std::string_view>(key);
  std::size_t p = 0;
  std::size_t k = 0;
  std::size_t any = kNone;
  std::size_t taken = 0;
  while (k < parts.size()) {
    if (p < parts_.size() && parts_[p] == kAnyParts) {
      any = p++;
      taken = k;
    } else if (p < parts_.size() && part_matches(parts_[p], parts[k])) {
      ++p;
      ++k;
    } else if (any != kNone) {
      p = any + 1;
      k = ++taken;
    } else {
      return false;
    }
  }
  while (p < parts_.size() && parts_[p] == kAnyParts) ++p;
  return p == parts_.size();
}

bool Glob::matches_anywhere(std::string_view key) const {
  if (parts_.size() != 1 || parts_.front() == kAnyParts) return matches(key);
  return part_matches(parts_.front(), key.substr(key.rfind('/') + 1));
}

}  // namespace leat
