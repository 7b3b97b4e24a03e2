#include "leat/cache/memcached/server_name.h"

#include <fmt/format.h>

#include <charconv>

#include "leat/base/errors.h"

namespace leat {
namespace {

constexpr std::uint16_t kPort = 11211;

Error not_a_server(std::string_view text) {
  return invalid(
      "the peer '{}' is no server; write host:port, or [address]:port for IPv6",
      text);
}

bool is_host(std::string_view host, std::string_view allowed_beside) {
  if (host.empty()) return false;
  for (const char c : host) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9');
    if (!is_plain && allowed_beside.find(c) == std::string_view::npos) {
      return false;
    }
  }
  return true;
}

}  // namespace

std::string ServerName::text() const {
  return host.find(':') == std::string::npos
             ? fmt::format("{}:{}", host, port)
             : fmt::format("[{}]:{}", host, port);
}

Result<ServerName> parse_server(std::string_view text) {
  ServerName server{.host = {}, .port = kPort};
  std::string_view rest = text;
  if (rest.starts_with('[')) {
    const std::size_t end = rest.find(']');
    if (end == std::string_view::npos) return not_a_server(text);
    server.host = rest.substr(1, end - 1);
    rest.remove_prefix(end + 1);
    if (!is_host(server.host, ":.%")) return not_a_server(text);
  } else {
    server.host = rest.substr(0, rest.find(':'));
    rest.remove_prefix(server.host.size());
    if (!is_host(server.host, ".-_")) return not_a_server(text);
  }
  if (rest.empty()) return server;
  const char* const end = rest.data() + rest.size();
  const auto [stopped, failed] =
      std::from_chars(rest.data() + 1, end, server.port);
  if (rest.front() != ':' || failed != std::errc() || stopped != end ||
      server.port == 0) {
    return not_a_server(text);
  }
  return server;
}

}  // namespace leat
