// Numbers and letters of a text.
#pragma once
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>

namespace leat {

/// Parses all of `text` as a number; nullopt if it is not one, or is too large
/// for T. A whole number has digits of `base`, and a sign only if T has one.
template <class T>
std::optional<T> number_from(std::string_view text, int base = 10) {
  T number{};
  const char* const end = text.data() + text.size();
  std::from_chars_result read{};
  if constexpr (std::is_integral_v<T>) {
    read = std::from_chars(text.data(), end, number, base);
  } else {
    read = std::from_chars(text.data(), end, number);
  }
  if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return number;
}

/// The same text with ASCII letters in lower case.
inline std::string lowered(std::string_view text) {
  std::string made(text);
  for (char& c : made) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return made;
}

}  // namespace leat
