// Words on their way through a shell.
#pragma once
#include <span>
#include <string>
#include <string_view>

namespace leat {

/// `word` as a shell takes it for one word and nothing else.
std::string shell_word(std::string_view word);

/// `words` as one line of a shell.
std::string shell_line(std::span<const std::string> words);

}  // namespace leat
