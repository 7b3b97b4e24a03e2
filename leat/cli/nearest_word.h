// Which word somebody may have meant.
#pragma once
#include <span>
#include <string_view>

namespace leat {

/// The word of `words` that takes the fewest slips to become `typed`: a letter
/// left out, added, another, or two exchanged (optimal string alignment). Empty
/// where the nearest takes more than a slip for each three letters, and one.
/// The first of equals.
std::string_view nearest_word(std::string_view typed,
                              std::span<const std::string_view> words);

}  // namespace leat
