#include "leat/store/cloud/uri.h"

#include <algorithm>

namespace leat {
namespace {

constexpr bool is_unreserved(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
         (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_' || c == '~';
}

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace

void append_uri_encoded(std::string& out, std::string_view text, Slash slash) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  const auto stays = [slash](char c) {
    return is_unreserved(c) || (c == '/' && slash == Slash::kKeep);
  };
  while (!text.empty()) {
    const auto run = std::ranges::find_if_not(text, stays);
    const auto run_bytes = static_cast<std::size_t>(run - text.begin());
    out.append(text.substr(0, run_bytes));
    text.remove_prefix(run_bytes);
    if (text.empty()) return;
    const auto byte = static_cast<unsigned char>(text.front());
    text.remove_prefix(1);
    out += '%';
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
  }
}

std::string uri_encode(std::string_view text, Slash slash) {
  std::string out;
  out.reserve(text.size() + text.size() / 4);
  append_uri_encoded(out, text, slash);
  return out;
}

std::string uri_decode(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && text.size() - i > 2) {
      const int high = hex_value(text[i + 1]);
      const int low = hex_value(text[i + 2]);
      if (high >= 0 && low >= 0) {
        out += static_cast<char>(high * 16 + low);
        i += 2;
        continue;
      }
    }
    out += text[i];
  }
  return out;
}

std::string canonical_query(const QueryPairs& query) {
  QueryPairs encoded;
  encoded.reserve(query.size());
  for (const auto& [name, value] : query) {
    encoded.emplace_back(uri_encode(name, Slash::kEncode),
                         uri_encode(value, Slash::kEncode));
  }
  std::sort(encoded.begin(), encoded.end());  // After encoding: AWS's rule.
  std::string out;
  for (const auto& [name, value] : encoded) {
    if (!out.empty()) out += '&';
    out.append(name).append("=").append(value);
  }
  return out;
}

}  // namespace leat
