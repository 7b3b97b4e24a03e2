#include "leat/store/http/request_head.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "leat/store/http/reply_sink.h"

namespace leat {
namespace {

/// Path and query, as they are sent.
std::string_view target_of(std::string_view url) {
  url.remove_prefix(url.find("://") + 3);
  url = url.substr(0, url.find('#'));
  url.remove_prefix(std::min(url.find_first_of("/?"), url.size()));
  return url;
}

std::string host_header(const HttpUrl& url) {
  const bool is_v6 = url.host.find(':') != std::string_view::npos;
  std::string host =
      is_v6 ? fmt::format("[{}]", url.host) : std::string(url.host);
  if (url.port != (url.is_tls ? kHttpsPort : kHttpPort))
    host += fmt::format(":{}", url.port);
  return host;
}

bool has_name(std::string_view header, std::string_view lower) {
  return header.size() > lower.size() && header[lower.size()] == ':' &&
         std::equal(lower.begin(), lower.end(), header.begin(),
                    [](char a, char b) { return a == (b | 0x20); });
}

}  // namespace

Result<void> check_headers(const HttpRequest& request) {
  for (const std::string& header : request.headers) {
    if (std::ranges::any_of(header, [](char c) {
          return c == '\r' || c == '\n' || c == '\0';
        })) {
      return request_error(request, ErrorCode::kInvalidArgument,
                           "a header of the request holds a line break");
    }
  }
  return {};
}

std::string request_head(const HttpRequest& request, const HttpUrl& url) {
  const std::string_view target = target_of(request.url);
  std::string head;
  head.reserve(512);
  fmt::format_to(std::back_inserter(head), "{} {}{} HTTP/1.1\r\n",
                 request.method, target.starts_with('/') ? "" : "/", target);
  const auto says = [&](std::string_view name) {
    return std::ranges::any_of(request.headers, [name](const auto& header) {
      return has_name(header, name);
    });
  };
  if (!says("host")) {
    fmt::format_to(std::back_inserter(head), "Host: {}\r\n", host_header(url));
  }
  if (!says("user-agent")) head += "User-Agent: leat\r\n";
  if (!says("accept")) head += "Accept: */*\r\n";
  for (const std::string& header : request.headers) {
    head += header;
    head += "\r\n";
  }
  head += "\r\n";
  return head;
}

}  // namespace leat
