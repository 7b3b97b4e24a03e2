#include "leat/agent/public_text.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <optional>

namespace leat {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
constexpr std::string_view kEllipsis = "\xE2\x80\xA6";

struct CodePoint {
  std::uint32_t value = 0;
  std::size_t bytes = 1;
};

/// The code point that `text` begins with; nullopt if it is malformed, longer
/// than need be, a surrogate, or past U+10FFFF.
std::optional<CodePoint> first_of(std::string_view text) {
  const auto at = [text](std::size_t i) {
    return static_cast<unsigned char>(text[i]);
  };
  const unsigned lead = at(0);
  if (lead < 0x80) return CodePoint{lead, 1};
  const std::size_t bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < bytes) return std::nullopt;
  std::uint32_t value = lead & (0xFFu >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((at(i) & 0xC0u) != 0x80) return std::nullopt;
    value = value << 6 | (at(i) & 0x3Fu);
  }
  constexpr std::uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = value >= 0xD800 && value < 0xE000;
  if (value < kLeast[bytes] || is_surrogate || value > 0x10FFFF) {
    return std::nullopt;
  }
  return CodePoint{value, bytes};
}

bool may_be_shown(std::uint32_t value) {
  const bool is_control = value < 0x20 || (value >= 0x7F && value < 0xA0);
  const bool turns_direction = value == 0x200E || value == 0x200F ||
                               (value >= 0x202A && value <= 0x202E) ||
                               (value >= 0x2066 && value <= 0x2069);
  const bool breaks_line = value == 0x2028 || value == 0x2029;
  return !is_control && !turns_direction && !breaks_line;
}

/// In such a URL a container stands where others have a user name:
/// UrlForm::kInHost of store/url_scheme.h.
constexpr std::string_view kContainerScheme = "abfss";

/// The letters and digits that `text` ends with.
std::string_view last_word_of(std::string_view text) {
  std::size_t begin = text.size();
  while (begin > 0 &&
         std::isalnum(static_cast<unsigned char>(text[begin - 1])) != 0) {
    --begin;
  }
  return text.substr(begin);
}

/// The text behind "://" without user name, password, query and fragment.
std::string_view bare(std::string_view scheme, std::string_view rest) {
  const std::string_view authority = rest.substr(0, rest.find_first_of("/?#"));
  const std::size_t colon = authority.find(':');
  const bool has_password =
      colon != std::string_view::npos &&
      authority.find_first_not_of("0123456789", colon + 1) !=
          std::string_view::npos;
  const bool is_nested = rest.find("://") != std::string_view::npos;
  // A password may hold any of "/?#@" where nobody escaped it.
  const std::size_t at =
      (has_password || is_nested ? rest : authority).rfind('@');
  const bool is_container = scheme == kContainerScheme && !has_password &&
                            !is_nested && at == authority.find('@');
  if (at != std::string_view::npos && !is_container) rest.remove_prefix(at + 1);
  return rest.substr(0, rest.find_first_of("?#"));
}

std::string without_credentials(std::string_view text) {
  std::string kept;
  for (;;) {
    const std::size_t slashes = text.find("://");
    if (slashes == std::string_view::npos) return kept.append(text);
    const std::size_t begin = slashes + 3;
    const std::size_t end =
        std::min(text.find_first_of(" \t\r\n\"'<>()", begin), text.size());
    kept.append(text.substr(0, begin));
    kept.append(bare(last_word_of(text.substr(0, slashes)),
                     text.substr(begin, end - begin)));
    text.remove_prefix(end);
  }
}

}  // namespace

std::string public_text(std::string_view text) {
  const std::string kept = without_credentials(text);
  std::string shown;
  std::string_view rest = kept;
  while (!rest.empty() && shown.size() <= kMostPublicBytes) {
    const std::optional<CodePoint> next = first_of(rest);
    const std::size_t bytes = next ? next->bytes : 1;
    shown += next && may_be_shown(next->value) ? rest.substr(0, bytes)
                                               : kReplacement;
    rest.remove_prefix(bytes);
  }
  if (shown.size() <= kMostPublicBytes) return shown;
  std::size_t cut = kMostPublicBytes - kEllipsis.size();
  while ((static_cast<unsigned char>(shown[cut]) & 0xC0u) == 0x80) --cut;
  return shown.substr(0, cut).append(kEllipsis);
}

}  // namespace leat
