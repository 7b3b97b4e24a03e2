// Text from jobs as it may be shown to people, programs and terminals.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace leat {

/// A text that is longer is cut, and ends with an ellipsis.
inline constexpr std::size_t kMostPublicBytes = 512;

/// `text` as valid UTF-8 of at most kMostPublicBytes bytes. Malformed bytes,
/// control characters (a terminal would obey them) and marks that turn the
/// direction of writing become U+FFFD.
///
/// Reduces every URL in the text to scheme, host and path: user name, password,
/// query and fragment may be credentials.
std::string public_text(std::string_view text);

}  // namespace leat
