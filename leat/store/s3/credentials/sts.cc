#include "leat/store/s3/credentials/sts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <pugixml.hpp>
#include <span>
#include <utility>
#include <vector>

#include "leat/base/buffer.h"
#include "leat/base/errors.h"
#include "leat/base/text.h"
#include "leat/store/cloud/ask.h"
#include "leat/store/cloud/expiration.h"
#include "leat/store/cloud/http_date.h"
#include "leat/store/cloud/uri.h"
#include "leat/store/http/shown_text.h"
#include "leat/store/http/status.h"
#include "leat/store/s3/aws/sigv4.h"
#include "leat/store/s3/credentials/static_keys.h"

namespace leat {
namespace {

using Secrets = std::vector<std::string_view>;

constexpr std::chrono::seconds kStsTimeout{10};
constexpr int kStsAttempts = 2;
constexpr std::chrono::minutes kClockNoise{1};

/// The regions of the time when there was one STS for all.
constexpr std::array<std::string_view, 16> kLegacyRegions = {
    "ap-northeast-1", "ap-south-1",   "ap-southeast-1", "ap-southeast-2",
    "aws-global",     "ca-central-1", "eu-central-1",   "eu-north-1",
    "eu-west-1",      "eu-west-2",    "eu-west-3",      "sa-east-1",
    "us-east-1",      "us-east-2",    "us-west-1",      "us-west-2"};

struct StsError {
  std::string code;
  std::string message;
};

/// The text of a refusal; empty if it is none of STS's.
StsError parse_refusal(const pugi::xml_document& document,
                       const Secrets& secrets) {
  pugi::xml_node error = document.child("ErrorResponse").child("Error");
  if (!error) error = document.child("Error");
  return {shown_text(error.child_value("Code"), secrets),
          shown_text(error.child_value("Message"), secrets)};
}

ErrorCode code_of(const StsError& said, int status) {
  if (said.code == "Throttling" || said.code == "ThrottlingException" ||
      said.code == "RequestLimitExceeded") {
    return ErrorCode::kThrottled;
  }
  // The identity provider could not be reached by STS.
  if (said.code == "IDPCommunicationError") return ErrorCode::kUnavailable;
  return code_of_status(status);
}

std::string_view remedy(const StsError& said) {
  if (said.code == "AccessDenied") {
    return "; check the role's trust policy and who asks";
  }
  if (said.code == "ExpiredTokenException" || said.code == "ExpiredToken" ||
      said.code == "InvalidIdentityToken") {
    return "; the token that was sent is no longer good: renew it";
  }
  if (said.code == "SignatureDoesNotMatch") {
    return "; check the source credentials and this machine's clock";
  }
  return "";
}

Result<TimedCredentials> parse_grant(const pugi::xml_document& document,
                                     std::string_view date,
                                     const CredentialTools& tools) {
  // <AssumeRoleResponse><AssumeRoleResult><Credentials>, or with WebIdentity.
  const pugi::xml_node result = document.document_element().find_child(
      [](const pugi::xml_node& node) { return node.child("Credentials"); });
  const pugi::xml_node granted = result.child("Credentials");
  TimedCredentials found{{granted.child_value("AccessKeyId"),
                          granted.child_value("SecretAccessKey"),
                          granted.child_value("SessionToken")}};
  const auto expiration = parse_iso8601(granted.child_value("Expiration"));
  if (found.keys.access_key_id.empty() ||
      found.keys.secret_access_key.empty() ||
      found.keys.session_token.empty() || !expiration) {
    return denied(
        "the answer of STS does not hold credentials; check "
        "AWS_ENDPOINT_URL_STS");
  }
  LEAT_TRY_VOID(check_keys(found.keys, "the answer of STS"));
  found.expires_at = expiry_on_our_clock(*expiration, date, tools);
  return found;
}

Result<TimedCredentials> parse_sts_reply(const HttpReply& reply,
                                         const Secrets& secrets,
                                         const CredentialTools& tools) {
  pugi::xml_document document;
  document.load_buffer(reply.body.data(), reply.body.size(),
                       pugi::parse_default, pugi::encoding_utf8);
  if (is_success(reply.status)) {
    return parse_grant(document, reply.header("date"), tools);
  }
  const StsError said = parse_refusal(document, secrets);
  return Error(code_of(said, reply.status),
               fmt::format("STS answers HTTP {}{}{}{}{}{}", reply.status,
                           said.code.empty() ? "" : " ", said.code,
                           said.message.empty() ? "" : ": ", said.message,
                           remedy(said)));
}

QueryPairs parameters(std::string_view action, const RoleRequest& role,
                      const CredentialTools& tools) {
  QueryPairs pairs = {{"Action", std::string(action)},
                      {"Version", "2011-06-15"},
                      {"RoleArn", role.role_arn}};
  std::string session = role.session_name;
  if (session.empty()) {
    session = fmt::format("leat-{}",
                          std::chrono::floor<std::chrono::seconds>(tools.now())
                              .time_since_epoch()
                              .count());
  }
  pairs.emplace_back("RoleSessionName", std::move(session));
  if (role.duration_seconds) {
    pairs.emplace_back("DurationSeconds",
                       std::to_string(*role.duration_seconds));
  }
  if (!role.external_id.empty()) {
    pairs.emplace_back("ExternalId", role.external_id);
  }
  return pairs;
}

constexpr std::string_view kFormType =
    "application/x-www-form-urlencoded; charset=utf-8";

void sign(HttpRequest& request, std::string_view body,
          const Credentials& source, const StsPlace& sts, WallTime now) {
  const AmzDate date(now);
  const std::string hash = sha256_hex(body);
  const std::array<SigningRequest::Header, 5> headers = {{
      {"content-type", kFormType},
      {"host", sts.endpoint.host},
      {"x-amz-content-sha256", hash},
      {"x-amz-date", date.text()},
      {"x-amz-security-token", source.session_token},
  }};
  const std::string path = sts.endpoint.path + "/";
  const SigningRequest signing{
      .method = request.method,
      .path = path,
      .query = "",
      .headers = std::span(headers).first(source.session_token.empty() ? 4 : 5),
      .payload_hash = hash};
  const Signer signer(source, sts.region, "sts");
  request.headers.push_back("X-Amz-Content-Sha256: " + hash);
  request.headers.push_back(fmt::format("X-Amz-Date: {}", date.text()));
  if (!source.session_token.empty()) {
    request.headers.push_back("X-Amz-Security-Token: " + source.session_token);
  }
  request.headers.push_back("Authorization: " +
                            signer.authorization(signing, date));
}

HttpRequest form_request(const StsPlace& sts, std::string_view body) {
  HttpRequest request;
  request.method = "POST";
  request.url = sts.endpoint.url() + "/";
  request.headers = {fmt::format("Content-Type: {}", kFormType)};
  request.body = as_bytes(body);
  return request;
}

}  // namespace

Result<StsPlace> sts_place(std::string_view region, const AwsProfile& profile,
                           const Env& env) {
  StsPlace place;
  place.region =
      region.empty()
          ? find_region(profile, env).value_or(std::string(kDefaultRegion))
          : std::string(region);
  if (!is_region(place.region)) {
    return invalid(
        "the region for STS cannot be one; check AWS_REGION and the profile");
  }
  if (const auto given = configured_endpoint("sts", profile, env)) {
    LEAT_TRY(place.endpoint, parse_endpoint(*given));
    return place;
  }
  auto kind = value_of(env, "AWS_STS_REGIONAL_ENDPOINTS");
  if (!kind) kind = profile.value("sts_regional_endpoints");
  const bool is_legacy = kind && *kind == "legacy" &&
                         std::find(kLegacyRegions.begin(), kLegacyRegions.end(),
                                   place.region) != kLegacyRegions.end();
  if (is_legacy) {
    place.endpoint = {"https", "sts.amazonaws.com", ""};
    place.region = kDefaultRegion;
  } else {
    place.endpoint = aws_endpoint("sts", place.region);
  }
  return place;
}

Result<TimedCredentials> assume_role(const RoleRequest& role,
                                     const Credentials& source,
                                     const StsPlace& sts,
                                     const CredentialTools& tools,
                                     const std::stop_token& stop) {
  const std::string body =
      canonical_query(parameters("AssumeRole", role, tools));
  const Secrets secrets = {source.secret_access_key, source.session_token,
                           role.external_id};
  WallTime now = std::chrono::floor<std::chrono::seconds>(tools.now());
  for (bool has_asked_the_time = false;; has_asked_the_time = true) {
    HttpRequest request = form_request(sts, body);
    sign(request, body, source, sts, now);
    LEAT_TRY(const HttpReply reply,
             ask_repeatedly(tools, request, kStsTimeout,
                            Proxy::kFromEnvironment, kStsAttempts, stop));
    // A signature more than five minutes off is refused: theirs is right.
    const auto theirs = parse_server_time(reply.header("date"));
    if (is_success(reply.status) || has_asked_the_time || !theirs ||
        std::chrono::abs(*theirs - now) < kClockNoise) {
      return parse_sts_reply(reply, secrets, tools);
    }
    now = *theirs;
  }
}

Result<TimedCredentials> assume_role_with_web_identity(
    const RoleRequest& role, std::string_view token, const StsPlace& sts,
    const CredentialTools& tools, const std::stop_token& stop) {
  QueryPairs pairs = parameters("AssumeRoleWithWebIdentity", role, tools);
  pairs.emplace_back("WebIdentityToken", token);
  const std::string body = canonical_query(pairs);
  const Secrets secrets = {token};
  LEAT_TRY(const HttpReply reply,
           ask_repeatedly(tools, form_request(sts, body), kStsTimeout,
                          Proxy::kFromEnvironment, kStsAttempts, stop));
  return parse_sts_reply(reply, secrets, tools);
}

Result<std::optional<std::uint32_t>> parse_duration_seconds(
    const std::optional<std::string>& text) {
  if (!text) return std::optional<std::uint32_t>();
  const auto seconds = number_from<std::uint32_t>(*text);
  if (!seconds || *seconds < 900 || *seconds > 43'200) {
    return invalid("duration_seconds is no number within 900 and 43200");
  }
  return seconds;
}

}  // namespace leat
