#include "leat/store/s3/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "leat/store/s3/aws_profile.h"
#include "leat/store/s3/credentials.h"

namespace leat {
namespace {

constexpr std::string_view kDefaultRegion = "us-east-1";
constexpr std::uint32_t kDefaultAttempts = 10;
constexpr std::uint32_t kMostAttempts = 1000;

struct Endpoint {
  std::string scheme;  // "http" or "https".
  std::string host;    // With the port, unless it is the scheme's own.
  std::string path;    // "" or "/…".
};

template <class... Args>
Error invalid(fmt::format_string<Args...> format, Args&&... args) {
  return Error(ErrorCode::kInvalidArgument,
               fmt::format(format, std::forward<Args>(args)...));
}

bool is_lower_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

bool consists_of(std::string_view text, std::string_view others) {
  return std::all_of(text.begin(), text.end(), [&](char c) {
    return is_lower_or_digit(c) || (c >= 'A' && c <= 'Z') ||
           others.find(c) != std::string_view::npos;
  });
}

/// True if it may be the first label of a host name under a `*.host`
/// certificate.
bool is_host_label(std::string_view bucket) {
  return bucket.size() >= 3 && bucket.size() <= 63 &&
         is_lower_or_digit(bucket.front()) &&
         is_lower_or_digit(bucket.back()) &&
         std::all_of(bucket.begin(), bucket.end(),
                     [](char c) { return is_lower_or_digit(c) || c == '-'; });
}

Result<void> check_bucket(std::string_view bucket) {
  if (bucket.empty() || bucket.size() > 255 || bucket == "." ||
      bucket == ".." || !consists_of(bucket, "._-")) {
    return invalid(
        "'{}' is no bucket name: 1 to 255 letters, digits, '.', '_' and '-'",
        uri_encode(bucket.substr(0, 255), Slash::kKeep));
  }
  return {};
}

Result<void> check_region(std::string_view region) {
  // It becomes part of a host name.
  if (region.size() > 64 || !consists_of(region, "-_")) {
    return invalid(
        "'{}' is no region: letters, digits and '-', as in us-east-1; check "
        "--region, AWS_REGION, AWS_DEFAULT_REGION and the profile",
        uri_encode(region.substr(0, 64), Slash::kEncode));
  }
  return {};
}

/// An endpoint URL and who gave it, for messages.
struct Configured {
  std::string url;
  std::string source;
};

Result<Endpoint> parse_endpoint(const Configured& configured) {
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
  // Not quoted: what stands before an '@' is a password.
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

bool is_true(const std::optional<std::string>& value) {
  return value && (*value == "true" || *value == "True" || *value == "TRUE");
}

/// The endpoint that was asked for; nullopt for AWS's own.
std::optional<Configured> configured_endpoint(const S3Options& options,
                                              const AwsProfile& profile,
                                              const Env& env) {
  if (!options.endpoint_url.empty()) {
    return Configured{options.endpoint_url, "endpoint_url (--endpoint-url)"};
  }
  if (const auto ignore = value_of(env, "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS");
      ignore ? is_true(ignore)
             : is_true(profile.value("ignore_configured_endpoint_urls"))) {
    return std::nullopt;
  }
  for (const char* name : {"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"}) {
    if (auto url = value_of(env, name)) return Configured{*url, name};
  }
  const auto of_service = profile.services.find("s3.endpoint_url");
  if (of_service != profile.services.end() && !of_service->second.empty()) {
    return Configured{
        of_service->second,
        fmt::format("the services section of profile '{}'", profile.name)};
  }
  if (auto url = profile.value("endpoint_url")) {
    return Configured{
        *url, fmt::format("endpoint_url of profile '{}'", profile.name)};
  }
  return std::nullopt;
}

std::string find_region(const S3Options& options, const AwsProfile& profile,
                        const Env& env) {
  if (!options.region.empty()) return options.region;
  if (auto region = value_of(env, "AWS_REGION")) return *region;
  if (auto region = value_of(env, "AWS_DEFAULT_REGION")) return *region;
  return profile.value("region").value_or(std::string(kDefaultRegion));
}

Endpoint aws_endpoint(std::string_view region) {
  return {"https",
          fmt::format("s3.{}.amazonaws.com{}", region,
                      region.starts_with("cn-") ? ".cn" : ""),
          ""};
}

bool is_aws(std::string_view host) {
  return host.ends_with(".amazonaws.com") ||
         host.ends_with(".amazonaws.com.cn");
}

Result<Addressing> choose_addressing(std::string_view bucket,
                                     const S3Options& options,
                                     const AwsProfile& profile,
                                     const Endpoint& endpoint) {
  Addressing wanted = options.addressing;
  if (wanted == Addressing::kAuto) {
    const std::string style =
        profile.value("s3.addressing_style").value_or("auto");
    if (style == "path") wanted = Addressing::kPath;
    if (style == "virtual") wanted = Addressing::kVirtualHost;
  }
  if (wanted == Addressing::kAuto) {
    return is_aws(endpoint.host) && is_host_label(bucket)
               ? Addressing::kVirtualHost
               : Addressing::kPath;
  }
  const bool is_too_dotted =
      endpoint.scheme == "https" && bucket.find('.') != std::string_view::npos;
  if (wanted == Addressing::kVirtualHost &&
      (is_too_dotted || bucket.find('_') != std::string_view::npos)) {
    return invalid(
        "bucket '{}' cannot be a host name (no certificate covers "
        "its dots or underscores); use path addressing",
        bucket);
  }
  return wanted;
}

Result<std::uint32_t> find_attempts(const S3Options& options,
                                    const AwsProfile& profile, const Env& env) {
  if (options.max_attempts != 0) return options.max_attempts;
  auto text = value_of(env, "AWS_MAX_ATTEMPTS");
  if (!text) text = profile.value("max_attempts");
  if (!text) return kDefaultAttempts;
  std::uint32_t attempts = 0;
  const char* const last = text->data() + text->size();
  const auto [end, failed] = std::from_chars(text->data(), last, attempts);
  if (failed != std::errc() || end != last || attempts == 0 ||
      attempts > kMostAttempts) {
    return invalid(
        "AWS_MAX_ATTEMPTS (or max_attempts in the profile) is not a "
        "number within 1 and {}",
        kMostAttempts);
  }
  return attempts;
}

Result<std::optional<AwsCredentials>> choose_credentials(
    const S3Options& options, const AwsProfile& profile, const Env& env) {
  if (options.no_sign_request) return std::optional<AwsCredentials>();
  std::vector<CredentialsSource> sources;
  // As awscli has it: a profile on the command line is meant, so it goes before
  // whatever stands in the environment.
  if (options.profile.empty()) sources.push_back(environment_credentials(env));
  sources.push_back(profile_credentials(profile));
  LEAT_TRY(AwsCredentials found, find_credentials(sources));
  return std::optional<AwsCredentials>(std::move(found));
}

}  // namespace

Result<S3Settings> resolve_s3_settings(std::string_view bucket,
                                       const S3Options& options,
                                       const Env& env) {
  LEAT_TRY_VOID(check_bucket(bucket));
  LEAT_TRY(const AwsProfile profile, load_aws_profile(options.profile, env));

  S3Settings settings;
  settings.region = find_region(options, profile, env);
  LEAT_TRY_VOID(check_region(settings.region));

  Endpoint endpoint = aws_endpoint(settings.region);
  if (const auto given = configured_endpoint(options, profile, env)) {
    LEAT_TRY(endpoint, parse_endpoint(*given));
  }
  LEAT_TRY(const Addressing addressing,
           choose_addressing(bucket, options, profile, endpoint));
  settings.host = endpoint.host;
  settings.base_path = endpoint.path;
  if (addressing == Addressing::kVirtualHost) {
    settings.host = fmt::format("{}.{}", bucket, endpoint.host);
  } else {
    settings.base_path.append("/").append(bucket);
  }
  settings.base_url = fmt::format("{}://{}{}", endpoint.scheme, settings.host,
                                  settings.base_path);

  settings.ca_bundle = options.ca_bundle;
  if (settings.ca_bundle.empty()) {
    settings.ca_bundle = value_of(env, "AWS_CA_BUNDLE")
                             .value_or(profile.value("ca_bundle").value_or(""));
  }
  LEAT_TRY(settings.max_attempts, find_attempts(options, profile, env));
  LEAT_TRY(settings.credentials, choose_credentials(options, profile, env));
  return settings;
}

}  // namespace leat
