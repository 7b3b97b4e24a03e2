#include "leat/serve/asked_host.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstdint>

#include "leat/base/text.h"

namespace leat {
namespace {

bool is_address(int family, std::string_view text) {
  in6_addr parsed{};  // The larger of the two.
  return ::inet_pton(family, std::string(text).c_str(), &parsed) == 1;
}

}  // namespace

bool may_ask_for(std::string_view host_header,
                 const std::vector<std::string>& names) {
  std::string_view host = host_header;
  const std::size_t colon = host.rfind(':');
  const std::size_t bracket = host.rfind(']');
  if (colon != std::string_view::npos &&
      (bracket == std::string_view::npos || bracket < colon)) {
    if (!number_from<std::uint16_t>(host.substr(colon + 1))) return false;
    host = host.substr(0, colon);
  }
  if (host.starts_with('[') && host.ends_with(']')) {
    return is_address(AF_INET6, host.substr(1, host.size() - 2));
  }
  return is_address(AF_INET, host) || equal_in_any_case(host, "localhost") ||
         std::ranges::any_of(names, [host](const std::string& name) {
           return equal_in_any_case(host, name);
         });
}

bool is_of_own_page(const RequestHead& head) {
  std::string_view origin = head.header("origin");
  if (origin.empty()) return true;
  const std::size_t scheme = origin.find("://");
  if (scheme == std::string_view::npos) return false;  // "null"
  origin.remove_prefix(scheme + 3);
  return equal_in_any_case(origin, head.header("host"));
}

}  // namespace leat
