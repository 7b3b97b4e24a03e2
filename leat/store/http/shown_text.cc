#include "leat/store/http/shown_text.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace leat {
namespace {

constexpr std::size_t kMostShown = 300;
constexpr std::size_t kShortestSecret = 4;
/// The shortest that AWS gives: an access key id.
constexpr std::size_t kLongWord = 20;
constexpr std::string_view kHidden = "(hidden)";

/// A character in UTF-8, and its length; 0: the bytes are none.
struct Character {
  std::uint32_t code = 0;
  std::size_t bytes = 0;
};

Character first_character(std::string_view text) {
  const auto at = [&](std::size_t i) -> std::uint32_t {
    return static_cast<unsigned char>(text[i]);
  };
  const std::uint32_t lead = at(0);
  if (lead < 0x80) return {.code = lead, .bytes = 1};
  const std::size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc0 || bytes > text.size()) return {};
  std::uint32_t code = lead & (0x7fU >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((at(i) & 0xc0U) != 0x80) return {};
    code = code << 6U | (at(i) & 0x3fU);
  }
  constexpr std::array<std::uint32_t, 5> kLeast = {0, 0, 0x80, 0x800, 0x10000};
  const bool is_one = code >= kLeast.at(bytes) && code <= 0x10ffff &&
                      (code < 0xd800 || code > 0xdfff);
  return is_one ? Character{.code = code, .bytes = bytes} : Character{};
}

bool is_shown(std::uint32_t code) {
  const bool is_control = code < 0x20 || (code >= 0x7f && code < 0xa0);
  const bool turns_text = (code >= 0x200b && code <= 0x200f) ||
                          (code >= 0x2028 && code <= 0x202e) ||
                          (code >= 0x2060 && code <= 0x206f) || code == 0xfeff;
  return !is_control && !turns_text;
}

std::string printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const auto [code, bytes] = first_character(text);
    const std::size_t taken = std::max<std::size_t>(bytes, 1);
    if (out.size() + taken > kMostShown) break;
    if (bytes == 0) {
      out += '?';
    } else if (is_shown(code)) {
      out += text.substr(0, bytes);
    } else {
      out += ' ';
    }
    text.remove_prefix(taken);
  }
  while (out.ends_with(' ')) out.pop_back();
  return out;
}

bool is_in_tokens(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9') || c == '+' || c == '/' || c == '=' ||
         c == '_' || c == '-';
}

/// `text` without the words, as tokens are spelt, that `is_hidden` names.
template <class IsHidden>
std::string without_words(std::string_view text, IsHidden is_hidden) {
  std::string out;
  while (!text.empty()) {
    const auto end = std::find_if_not(text.begin(), text.end(), is_in_tokens);
    const auto size = static_cast<std::size_t>(end - text.begin());
    const std::string_view word = text.substr(0, size);
    out.append(size >= kLongWord && is_hidden(word) ? kHidden : word);
    text.remove_prefix(size);
    if (text.empty()) break;
    out += text.front();
    text.remove_prefix(1);
  }
  return out;
}

bool shares_part(std::string_view word, std::string_view secret) {
  for (std::size_t i = 0; i + kLongWord <= word.size(); ++i) {
    if (secret.find(word.substr(i, kLongWord)) != std::string_view::npos) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::string shown_text(std::string_view text,
                       std::span<const std::string_view> secrets) {
  // Hidden before it is cut: half a secret would not be found.
  std::string out(text.substr(0, 8 * kMostShown));
  for (const std::string_view secret : secrets) {
    if (secret.size() < kShortestSecret) continue;
    for (std::size_t at = out.find(secret); at != std::string::npos;
         at = out.find(secret, at + kHidden.size())) {
      out.replace(at, secret.size(), kHidden);
    }
  }
  return printable(without_words(out, [secrets](std::string_view word) {
    return std::ranges::any_of(secrets, [word](std::string_view secret) {
      return shares_part(word, secret);
    });
  }));
}

std::string shown_text(std::string_view text,
                       std::span<const std::string> secrets) {
  const std::vector<std::string_view> views(secrets.begin(), secrets.end());
  return shown_text(text, std::span<const std::string_view>(views));
}

std::string shown_without_long_words(std::string_view text) {
  return printable(without_words(text, [](std::string_view) { return true; }));
}

}  // namespace leat
