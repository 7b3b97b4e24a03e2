// The parts of an HTTP URL that matter to a client.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "leat/base/result.h"

namespace leat {

inline constexpr std::uint16_t kHttpPort = 80;
inline constexpr std::uint16_t kHttpsPort = 443;

/// The parts of a URL. Borrows from the text it was split from.
struct HttpUrl {
  std::string_view scheme;       ///< As written; http or https in any case.
  std::string_view host;         ///< Without the brackets of an IPv6 address.
  std::uint16_t port = 0;        ///< The scheme's default if not written.
  bool host_is_address = false;  ///< An IPv4 or IPv6 address, not a name.
  bool is_tls = false;           ///< https
};

/// Errors:
///   kInvalidArgument  not http or https, no host, a user name, a bad port, or
///                     a byte that must be percent-encoded
Result<HttpUrl> split_http_url(std::string_view url);

/// `url` for display: without query, fragment, user name or password, any of
/// which may be a secret.
std::string url_for_people(std::string_view url);

/// `text` with everything but unreserved characters and '/' as %XX (RFC 3986,
/// 2.3).
std::string percent_encode_path(std::string_view text);

}  // namespace leat
