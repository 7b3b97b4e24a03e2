// Makes text from jobs fit for people, programs and terminals.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace leat {

/// A longer text is cut off and ends with an ellipsis.
inline constexpr std::size_t kMostPublicBytes = 512;

/// `text` as valid UTF-8 of at most kMostPublicBytes bytes. Malformed bytes,
/// control characters (which a terminal would obey) and marks that change the
/// writing direction become U+FFFD.
///
/// Reduces every URL in the text to scheme, host and path, since user name,
/// password, query and fragment may be credentials. The container of an
/// abfss:// URL stays.
std::string public_text(std::string_view text);

}  // namespace leat
