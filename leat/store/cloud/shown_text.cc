#include "leat/store/cloud/shown_text.h"

#include <algorithm>
#include <cstddef>

namespace leat {
namespace {

constexpr std::size_t kMostShown = 300;
constexpr std::size_t kShortestSecret = 4;
/// The shortest that AWS gives: an access key id.
constexpr std::size_t kLongWord = 20;
constexpr std::string_view kHidden = "(hidden)";

std::string printable(std::string_view text) {
  std::string out(text.substr(0, kMostShown));
  for (char& c : out) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  while (out.ends_with(' ')) out.pop_back();
  return out;
}

bool is_in_tokens(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9') || c == '+' || c == '/' || c == '=' ||
         c == '_' || c == '-';
}

}  // namespace

std::string shown_text(std::string_view text,
                       std::span<const std::string_view> secrets) {
  // Hidden before it is cut: half a secret would not be found.
  std::string out(text);
  for (const std::string_view secret : secrets) {
    if (secret.size() < kShortestSecret) continue;
    for (std::size_t at = out.find(secret); at != std::string::npos;
         at = out.find(secret, at + kHidden.size())) {
      out.replace(at, secret.size(), kHidden);
    }
  }
  return printable(out);
}

std::string shown_without_long_words(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const auto end = std::find_if_not(text.begin(), text.end(), is_in_tokens);
    const auto size = static_cast<std::size_t>(end - text.begin());
    out.append(size >= kLongWord ? kHidden : text.substr(0, size));
    text.remove_prefix(size);
    if (text.empty()) break;
    out += text.front();
    text.remove_prefix(1);
  }
  return printable(out);
}

}  // namespace leat
