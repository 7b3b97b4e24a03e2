#include "leat/store/s3/aws/endpoint.h"

#include <fmt/format.h>

namespace leat {
namespace {

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
