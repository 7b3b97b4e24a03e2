#include "leat/store/http/http_url.h"

#include <arpa/inet.h>
#include <algorithm>
#include <array>

#include "leat/base/errors.h"
#include "leat/base/text.h"

namespace leat {
namespace {

Error bad_url(std::string_view url, std::string_view why) {
  return invalid("'{}' is not a URL to fetch: {}", url_for_people(url), why);
}

bool equals_ignoring_case(std::string_view text, std::string_view lower) {
  return std::equal(text.begin(), text.end(), lower.begin(), lower.end(),
                    [](char a, char b) {
                      return a == b || (a >= 'A' && a <= 'Z' && a + 32 == b);
                    });
}

bool is_address(std::string_view host) {
  std::array<char, INET6_ADDRSTRLEN + 1> text{};
  if (host.size() >= text.size()) return false;
  host.copy(text.data(), host.size());
  std::array<unsigned char, 16> bytes{};
  return inet_pton(AF_INET, text.data(), bytes.data()) == 1 ||
         inet_pton(AF_INET6, text.data(), bytes.data()) == 1;
}

std::string_view authority_of(std::string_view after_scheme) {
  return after_scheme.substr(
      0, std::min(after_scheme.find_first_of("/?#"), after_scheme.size()));
}

}  // namespace

Result<HttpUrl> split_http_url(std::string_view url) {
  if (std::any_of(url.begin(), url.end(), [](char c) {
        return static_cast<unsigned char>(c) <= 0x20 || c == 0x7f;
      })) {
    return invalid(
        "a URL to fetch holds a space or a control character; percent-encode "
        "it");
  }
  HttpUrl parts;
  const std::size_t colon = url.find("://");
  parts.scheme = url.substr(0, std::min(colon, url.size()));
  if (colon != std::string_view::npos &&
      equals_ignoring_case(parts.scheme, "https")) {
    parts.port = kHttpsPort;
    parts.is_tls = true;
  } else if (colon != std::string_view::npos &&
             equals_ignoring_case(parts.scheme, "http")) {
    parts.port = kHttpPort;
  } else {
    return bad_url(url, "it must begin with http:// or https://");
  }

  std::string_view authority = authority_of(url.substr(colon + 3));
  if (authority.find('@') != std::string_view::npos) {
    return bad_url(url, "it holds a user name; give credentials another way");
  }
  std::string_view port;
  if (authority.starts_with('[')) {
    const std::size_t end = authority.find(']');
    if (end == std::string_view::npos) return bad_url(url, "'[' has no ']'");
    parts.host = authority.substr(1, end - 1);
    port = authority.substr(end + 1);
  } else {
    const std::size_t end = std::min(authority.find(':'), authority.size());
    parts.host = authority.substr(0, end);
    port = authority.substr(end);
  }
  if (parts.host.empty()) return bad_url(url, "it names no host");
  if (!port.empty()) {
    const auto told = number_from<std::uint16_t>(port.substr(1));
    if (port.front() != ':' || !told || *told == 0) {
      return bad_url(url, "a port is a number from 1 to 65535");
    }
    parts.port = *told;
  }
  parts.host_is_address = is_address(parts.host);
  return parts;
}

std::string url_for_people(std::string_view url) {
  url = url.substr(0, std::min(url.find_first_of("?#"), url.size()));
  const std::size_t colon = url.find("://");
  if (colon == std::string_view::npos) return std::string(url);
  const std::string_view rest = url.substr(colon + 3);
  const std::size_t at = authority_of(rest).rfind('@');
  if (at == std::string_view::npos) return std::string(url);
  return std::string(url.substr(0, colon + 3)).append(rest.substr(at + 1));
}

std::string percent_encode_path(std::string_view text) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string encoded;
  encoded.reserve(text.size());
  for (const char c : text) {
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
        (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_' ||
        c == '~' || c == '/') {
      encoded.push_back(c);
    } else {
      const auto byte = static_cast<unsigned char>(c);
      encoded.append({'%', kHex[byte >> 4], kHex[byte & 15]});
    }
  }
  return encoded;
}

}  // namespace leat
