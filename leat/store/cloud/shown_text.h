// Making what others said fit to be shown: short, printable, without secrets.
#pragma once
#include <span>
#include <string>
#include <string_view>

namespace leat {

/// At most 300 bytes of `text`, control characters as blanks, every occurrence
/// of one of `secrets` as "(hidden)". Secrets shorter than 4 bytes are left:
/// they would hide half the text.
std::string shown_text(std::string_view text,
                       std::span<const std::string_view> secrets);

/// The same for text whose secrets are not known: every run of 20 or more
/// characters that keys and tokens are made of is hidden.
std::string shown_without_long_words(std::string_view text);

}  // namespace leat
