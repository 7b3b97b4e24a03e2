// Making what others said fit to be shown: short, printable, without secrets.
#pragma once
#include <span>
#include <string>
#include <string_view>

namespace leat {

/// At most 300 bytes of `text`, as UTF-8 without control characters and marks
/// that turn its direction.
///
/// Every occurrence of one of `secrets` becomes "(hidden)", and every word that
/// shares 20 bytes with one: servers repeat what they were sent, whole or in
/// part. Secrets shorter than 4 bytes are left: they would hide half the text.
std::string shown_text(std::string_view text,
                       std::span<const std::string_view> secrets = {});
std::string shown_text(std::string_view text,
                       std::span<const std::string> secrets);

/// The same for text whose secrets are not known: every run of 20 or more
/// characters that keys and tokens are made of is hidden.
std::string shown_without_long_words(std::string_view text);

}  // namespace leat
