// Texts of others, such as keys, on a terminal.
#pragma once
#include <string>
#include <string_view>

namespace leat {

/// `text` with all that a terminal would obey written as \x1b: control
/// characters, and marks that turn the writing direction.
std::string for_terminal(std::string_view text);

/// The same; line ends and tabs stay.
std::string lines_for_terminal(std::string_view text);

}  // namespace leat
