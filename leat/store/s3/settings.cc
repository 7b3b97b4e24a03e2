#include "leat/store/s3/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "leat/base/errors.h"
#include "leat/base/text.h"
#include "leat/store/cloud/node_turn.h"
#include "leat/store/s3/aws/aws_profile.h"
#include "leat/store/s3/aws/endpoint.h"
#include "leat/store/s3/credentials/chain.h"

namespace leat {
namespace {

constexpr std::uint32_t kMostAttempts = 1000;

bool is_lower_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
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
  if (!is_region(region)) {
    return invalid(
        "'{}' is no region: letters, digits and '-', as in us-east-1; check "
        "--region, AWS_REGION, AWS_DEFAULT_REGION and the profile",
        uri_encode(region.substr(0, 64), Slash::kEncode));
  }
  return {};
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
  if (!text) return 0;
  const auto attempts = number_from<std::uint32_t>(*text);
  if (!attempts || *attempts == 0 || *attempts > kMostAttempts) {
    return invalid(
        "AWS_MAX_ATTEMPTS (or max_attempts in the profile) is not a "
        "number within 1 and {}",
        kMostAttempts);
  }
  return *attempts;
}

std::string find_ca_bundle_setting(const S3Options& options,
                                   const AwsProfile& profile, const Env& env) {
  if (!options.ca_bundle.empty()) return options.ca_bundle;
  return value_of(env, "AWS_CA_BUNDLE")
      .value_or(profile.value("ca_bundle").value_or(""));
}

std::unique_ptr<CredentialChain> make_chain(const S3Options& options,
                                            const AwsProfile& profile,
                                            const Env& env) {
  CredentialTools tools{.env = env};
  tools.ca_bundle = find_ca_bundle_setting(options, profile, env);
  return default_credential_chain({.profile = options.profile,
                                   .region = options.region,
                                   .helper = options.credential_helper},
                                  profile, tools);
}

Result<void> choose_credentials(const S3Options& options,
                                const AwsProfile& profile, const Env& env,
                                S3Settings& settings) {
  if (options.no_sign_request) return {};
  auto chain = make_chain(options, profile, env);
  LEAT_TRY(auto found, chain->fetch_locally());
  if (found) settings.credentials = std::move(found->keys);
  if (chain->is_constant()) return {};
  settings.provider = std::move(chain);
  settings.turn_path = node_turn_path(env);
  return {};
}

/// `s3.OLD.amazonaws.com` in `text` as `s3.NEW.amazonaws.com`.
void replace_region(std::string& text, std::string_view old_region,
                    std::string_view region) {
  const std::string wanted = fmt::format("s3.{}.amazonaws.com", old_region);
  const std::size_t at = text.find(wanted);
  if (at == std::string::npos) return;
  text.replace(at, wanted.size(), fmt::format("s3.{}.amazonaws.com", region));
}

}  // namespace

Result<S3Settings> resolve_s3_settings(std::string_view bucket,
                                       const S3Options& options,
                                       const Env& env) {
  LEAT_TRY_VOID(check_bucket(bucket));
  LEAT_TRY(const AwsProfile profile, load_aws_profile(options.profile, env));

  S3Settings settings;
  settings.region = options.region;
  if (settings.region.empty()) {
    settings.region =
        find_region(profile, env).value_or(std::string(kDefaultRegion));
  }
  LEAT_TRY_VOID(check_region(settings.region));

  auto given = configured_endpoint("s3", profile, env);
  if (!options.endpoint_url.empty()) {
    given = {options.endpoint_url, "endpoint_url (--endpoint-url)"};
  }
  Endpoint endpoint = aws_endpoint("s3", settings.region);
  if (given) {
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

  settings.ca_bundle = find_ca_bundle_setting(options, profile, env);
  settings.requester_pays = options.requester_pays;
  LEAT_TRY(settings.max_attempts, find_attempts(options, profile, env));
  LEAT_TRY_VOID(choose_credentials(options, profile, env, settings));
  return settings;
}

Result<std::unique_ptr<CredentialChain>> open_credential_chain(
    const S3Options& options, const Env& env) {
  LEAT_TRY(const AwsProfile profile, load_aws_profile(options.profile, env));
  return make_chain(options, profile, env);
}

S3Settings moved_to_region(S3Settings settings, std::string_view region) {
  replace_region(settings.host, settings.region, region);
  replace_region(settings.base_url, settings.region, region);
  settings.region = region;
  return settings;
}

}  // namespace leat
