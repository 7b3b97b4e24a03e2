#include "leat/store/s3/aws/endpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace leat {
namespace {

template <class... Args>
Error invalid(fmt::format_string<Args...> format, Args&&... args) {
  return Error(ErrorCode::kInvalidArgument,
               fmt::format(format, std::forward<Args>(args)...));
}

bool is_true(const std::optional<std::string>& value) {
  return value && (*value == "true" || *value == "True" || *value == "TRUE");
}

std::string upper(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return out;
}

}  // namespace

bool consists_of(std::string_view text, std::string_view others) {
  return std::all_of(text.begin(), text.end(), [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
           (c >= 'A' && c <= 'Z') || others.find(c) != std::string_view::npos;
  });
}

bool is_region(std::string_view text) {
  return !text.empty() && text.size() <= 64 && consists_of(text, "-_");
}

std::optional<ConfiguredEndpoint> configured_endpoint(std::string_view service,
                                                      const AwsProfile& profile,
                                                      const Env& env) {
  if (const auto ignore = value_of(env, "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS");
      ignore ? is_true(ignore)
             : is_true(profile.value("ignore_configured_endpoint_urls"))) {
    return std::nullopt;
  }
  for (const std::string& name : {"AWS_ENDPOINT_URL_" + upper(service),
                                  std::string("AWS_ENDPOINT_URL")}) {
    if (auto url = value_of(env, name)) return ConfiguredEndpoint{*url, name};
  }
  const auto of_service =
      profile.services.find(std::string(service) + ".endpoint_url");
  if (of_service != profile.services.end() && !of_service->second.empty()) {
    return ConfiguredEndpoint{
        of_service->second,
        fmt::format("the services section of profile '{}'", profile.name)};
  }
  if (auto url = profile.value("endpoint_url")) {
    return ConfiguredEndpoint{
        *url, fmt::format("endpoint_url of profile '{}'", profile.name)};
  }
  return std::nullopt;
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

Endpoint aws_endpoint(std::string_view service, std::string_view region) {
  return {"https",
          fmt::format("{}.{}.amazonaws.com{}", service, region,
                      region.starts_with("cn-") ? ".cn" : ""),
          ""};
}

std::optional<std::string> find_region(const AwsProfile& profile,
                                       const Env& env) {
  if (auto region = value_of(env, "AWS_REGION")) return region;
  if (auto region = value_of(env, "AWS_DEFAULT_REGION")) return region;
  return profile.value("region");
}

}  // namespace leat
