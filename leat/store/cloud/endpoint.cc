#include "leat/store/cloud/endpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "leat/base/errors.h"

namespace leat {

bool consists_of(std::string_view text, std::string_view others) {
  return std::all_of(text.begin(), text.end(), [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
           (c >= 'A' && c <= 'Z') || others.find(c) != std::string_view::npos;
  });
}

Result<Endpoint> parse_endpoint(const ConfiguredEndpoint& configured) {
  const std::string remedy = fmt::format(
      "write http://HOST:PORT or https://HOST in {}", configured.source);
  std::string_view url = configured.url;
  Endpoint endpoint;
  const std::size_t colon = url.find("://");
  endpoint.scheme = url.substr(0, colon == std::string_view::npos ? 0 : colon);
  if (endpoint.scheme != "http" && endpoint.scheme != "https") {
    return invalid(
        "the endpoint URL does not begin with http:// or https://; {}", remedy);
  }
  url.remove_prefix(colon + 3);
  const std::size_t slash = url.find('/');
  std::string_view host = url.substr(0, slash);
  std::string_view path =
      slash == std::string_view::npos ? "" : url.substr(slash);
  // Not quoted: the text before an '@' is a password.
  if (host.empty() || host.size() > 255 || !consists_of(host, ".-_:[]")) {
    return invalid(
        "the endpoint URL has no host, or one with '@' or other "
        "characters that no host name has; {}",
        remedy);
  }
  while (path.ends_with('/')) path.remove_suffix(1);
  if (!consists_of(path, "/-._~%")) {
    return invalid(
        "the endpoint URL has a query, or characters in its path "
        "that do not belong there; {}",
        remedy);
  }
  const std::string_view own_port = endpoint.scheme == "http" ? ":80" : ":443";
  if (host.ends_with(own_port)) host.remove_suffix(own_port.size());
  endpoint.host = host;
  endpoint.path = path;
  return endpoint;
}

}  // namespace leat
