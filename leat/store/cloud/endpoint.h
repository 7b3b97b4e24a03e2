// The address of a service.
#pragma once
#include <string>
#include <string_view>

#include "leat/base/result.h"

namespace leat {

struct Endpoint {
  std::string scheme;  ///< "http" or "https".
  std::string host;    ///< With the port, unless it is the scheme's own.
  std::string path;    ///< "" or "/…", without a trailing slash.

  std::string url() const { return scheme + "://" + host + path; }
};

/// An endpoint URL and its source, for messages.
struct ConfiguredEndpoint {
  std::string url;
  std::string source;
};

/// Errors:
///   kInvalidArgument  not http or https, no host, a user name or a query in it
///                     (never quoted: what stands before an '@' is a password)
Result<Endpoint> parse_endpoint(const ConfiguredEndpoint& configured);

/// True if `text` holds nothing but letters, digits and `others`.
bool consists_of(std::string_view text, std::string_view others);

}  // namespace leat
