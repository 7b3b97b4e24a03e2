#include "leat/cli/terminal_text.h"

#include <fmt/format.h>

#include <cstddef>
#include <iterator>

namespace leat {
namespace {

/// How many bytes at the beginning of UTF-8 a terminal would obey.
std::size_t obeyed_bytes(std::string_view text) {
  const auto at = [text](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  if (at(0) < 0x20 || at(0) == 0x7F) return 1;
  if (at(0) == 0xC2) return at(1) >= 0x80 && at(1) < 0xA0 ? 2 : 0;
  if (at(0) != 0xE2) return 0;
  // U+200E, U+200F, U+2028 to U+202E; U+2066 to U+2069.
  const bool is_mark = (at(1) == 0x80 && ((at(2) >= 0x8E && at(2) <= 0x8F) ||
                                          (at(2) >= 0xA8 && at(2) <= 0xAE))) ||
                       (at(1) == 0x81 && at(2) >= 0xA6 && at(2) <= 0xA9);
  return is_mark ? 3 : 0;
}

std::string with_escapes(std::string_view text, std::string_view kept) {
  std::string shown;
  while (!text.empty()) {
    const bool is_kept = kept.find(text.front()) != std::string_view::npos;
    const std::size_t obeyed = is_kept ? 0 : obeyed_bytes(text);
    if (obeyed == 0) {
      shown += text.front();
      text.remove_prefix(1);
    }
    for (const char byte : text.substr(0, obeyed)) {
      fmt::format_to(std::back_inserter(shown), "\\x{:02x}",
                     static_cast<unsigned char>(byte));
    }
    text.remove_prefix(obeyed);
  }
  return shown;
}

}  // namespace

std::string for_terminal(std::string_view text) {
  return with_escapes(text, "");
}

std::string lines_for_terminal(std::string_view text) {
  return with_escapes(text, "\n\t");
}

}  // namespace leat
