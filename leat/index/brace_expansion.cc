#include "leat/index/brace_expansion.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "leat/base/errors.h"
#include "leat/base/text.h"

namespace leat {
namespace {

using Texts = std::vector<std::string>;

Error too_much(std::string_view pattern, std::string_view of_what) {
  return invalid("'{}' stands for more than {}", pattern, of_what);
}

/// A whole number of at most 18 digits.
std::optional<std::int64_t> number_of(std::string_view text) {
  if (text.size() > 18) return std::nullopt;
  return number_from<std::int64_t>(text);
}

bool is_letter(std::string_view text) {
  return text.size() == 1 && ((text[0] >= 'a' && text[0] <= 'z') ||
                              (text[0] >= 'A' && text[0] <= 'Z'));
}

bool has_zeros(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  return text.size() > 1 && text.starts_with('0');
}

/// A range's ends and its step, as numbers or as letters.
struct Range {
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::int64_t step = 1;
  std::size_t width = 0;
  bool is_letters = false;

  std::uint64_t count() const {
    const std::int64_t span = first < last ? last - first : first - last;
    return static_cast<std::uint64_t>(span / step) + 1;
  }
  std::string at(std::uint64_t i) const {
    const auto moved = static_cast<std::int64_t>(i) * step;
    const std::int64_t value = first < last ? first + moved : first - moved;
    if (is_letters) return std::string(1, static_cast<char>(value));
    return fmt::format("{:0{}}", value, width);
  }
};

/// Parses "0000..0128" or "0..10..5"; nullopt if it is not a range.
std::optional<Range> range_of(std::string_view inside) {
  const std::size_t dots = inside.find("..");
  if (dots == std::string_view::npos) return std::nullopt;
  const std::string_view first = inside.substr(0, dots);
  std::string_view last = inside.substr(dots + 2);
  Range range;
  if (const std::size_t more = last.find("..");
      more != std::string_view::npos) {
    const auto step = number_of(last.substr(more + 2));
    if (!step || *step == 0) return std::nullopt;
    range.step = *step < 0 ? -*step : *step;
    last = last.substr(0, more);
  }
  if (is_letter(first) && is_letter(last)) {
    range.first = first[0];
    range.last = last[0];
    range.is_letters = true;
    return range;
  }
  const auto from = number_of(first);
  const auto to = number_of(last);
  if (!from || !to) return std::nullopt;
  range.first = *from;
  range.last = *to;
  if (has_zeros(first) || has_zeros(last)) {
    range.width = std::max(first.size(), last.size());
  }
  return range;
}

/// Expands one pattern; every step keeps to the bounds.
class Expander {
 public:
  explicit Expander(std::string_view pattern) : pattern_(pattern) {}

  Result<Texts> expand(std::string_view text, std::size_t depth) const {
    if (depth > kMostBraceDepth) {
      return too_much(pattern_,
                      fmt::format("{} braces in braces", kMostBraceDepth));
    }
    Texts made{""};
    std::size_t at = 0;
    while (at < text.size()) {
      const std::size_t open = std::min(text.find('{', at), text.size());
      LEAT_TRY_VOID(append(made, {std::string(text.substr(at, open - at))}));
      if (open == text.size()) break;
      const std::size_t close = matching(text, open);
      std::optional<Texts> choices;
      if (close != std::string_view::npos) {
        LEAT_TRY(choices,
                 choices_of(text.substr(open + 1, close - open - 1), depth));
      }
      LEAT_TRY_VOID(append(made, choices ? *choices : Texts{"{"}));
      at = choices ? close + 1 : open + 1;
    }
    return made;
  }

 private:
  static std::size_t matching(std::string_view text, std::size_t open) {
    std::size_t depth = 0;
    for (std::size_t i = open; i < text.size(); ++i) {
      if (text[i] == '{') ++depth;
      if (text[i] == '}' && --depth == 0) return i;
    }
    return std::string_view::npos;
  }

  /// The parts between the commas that lie in no further braces.
  static std::vector<std::string_view> parts_of(std::string_view inside) {
    std::vector<std::string_view> parts;
    std::size_t depth = 0;
    std::size_t begin = 0;
    for (std::size_t i = 0; i < inside.size(); ++i) {
      if (inside[i] == '{') ++depth;
      if (inside[i] == '}' && depth != 0) --depth;
      if (inside[i] != ',' || depth != 0) continue;
      parts.push_back(inside.substr(begin, i - begin));
      begin = i + 1;
    }
    parts.push_back(inside.substr(begin));
    return parts;
  }

  /// Nullopt for braces that stand for themselves.
  Result<std::optional<Texts>> choices_of(std::string_view inside,
                                          std::size_t depth) const {
    const std::vector<std::string_view> parts = parts_of(inside);
    Texts choices;
    if (parts.size() == 1) {
      const std::optional<Range> range = range_of(inside);
      if (!range) return std::optional<Texts>();
      if (range->count() > kMostExpansions) return too_many();
      for (std::uint64_t i = 0; i < range->count(); ++i) {
        choices.push_back(range->at(i));
      }
      return std::optional(std::move(choices));
    }
    for (const std::string_view part : parts) {
      LEAT_TRY(Texts each, expand(part, depth + 1));
      if (choices.size() + each.size() > kMostExpansions) return too_many();
      std::ranges::move(each, std::back_inserter(choices));
    }
    return std::optional(std::move(choices));
  }

  /// Every text of `made` with every one of `ends` behind it.
  Result<void> append(Texts& made, const Texts& ends) const {
    if (made.size() > kMostExpansions / ends.size()) return too_many();
    const std::size_t bytes =
        bytes_of(made) * ends.size() + bytes_of(ends) * made.size();
    if (bytes > kMostExpandedBytes) {
      return too_much(pattern_, fmt::format("{} bytes", kMostExpandedBytes));
    }
    if (ends.size() == 1) {
      for (std::string& text : made) text += ends.front();
      return {};
    }
    Texts longer;
    longer.reserve(made.size() * ends.size());
    for (const std::string& begin : made) {
      for (const std::string& end : ends) longer.push_back(begin + end);
    }
    made = std::move(longer);
    return {};
  }

  static std::size_t bytes_of(const Texts& texts) {
    std::size_t bytes = 0;
    for (const std::string& text : texts) bytes += text.size();
    return bytes;
  }

  Error too_many() const {
    return too_much(pattern_,
                    fmt::format("{} names; a wildcard (*) or a folder lists "
                                "them instead",
                                kMostExpansions));
  }

  const std::string_view pattern_;
};

}  // namespace

Result<Texts> expand_braces(std::string_view pattern) {
  if (pattern.size() > kMostPatternBytes) {
    return invalid("a source of {} bytes is too long; {} are the most",
                   pattern.size(), kMostPatternBytes);
  }
  return Expander(pattern).expand(pattern, 0);
}

}  // namespace leat
