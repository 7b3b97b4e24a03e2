#include "leat/store/s3/credentials/imds.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "leat/base/errors.h"
#include "leat/base/text.h"
#include "leat/store/cloud/ask.h"
#include "leat/store/http/http_url.h"
#include "leat/store/http/status.h"
#include "leat/store/s3/aws/endpoint.h"
#include "leat/store/s3/credentials/json_reply.h"
#include "leat/store/s3/credentials/static_keys.h"

namespace leat {
namespace {

constexpr std::string_view kEndpoint = "http://169.254.169.254";
constexpr std::string_view kEndpointIpv6 = "http://[fd00:ec2::254]";
constexpr std::string_view kRolePath = "meta-data/iam/security-credentials/";
constexpr std::size_t kMostImdsTokenBytes = 1024;
constexpr std::size_t kMostRoleBytes = 128;

std::optional<std::string> setting(const AwsProfile& profile, const Env& env,
                                   std::string_view variable,
                                   std::string_view in_profile) {
  if (auto value = value_of(env, variable)) return value;
  return profile.value(in_profile);
}

int number_within(const std::optional<std::string>& text, int fallback,
                  int most) {
  if (!text) return fallback;
  const auto value = number_from<int>(*text);
  return value && *value >= 1 ? std::min(*value, most) : fallback;
}

bool is_ignoring_case(std::string_view text, std::string_view lower) {
  return std::equal(text.begin(), text.end(), lower.begin(), lower.end(),
                    [](char a, char b) { return (a | 0x20) == b; });
}

class InstanceRole final : public CredentialProvider {
 public:
  InstanceRole(Result<ImdsOptions> options, CredentialTools tools)
      : options_(std::move(options)), tools_(std::move(tools)) {}

  std::string name() const override {
    return "the EC2 instance's role (IMDSv2)";
  }
  bool is_local() const override { return !options_ || options_->is_disabled; }
  Result<CredentialAnswer> fetch(std::stop_token stop) override;

 private:
  Result<CredentialAnswer> ask_role(ImdsSession& session,
                                    const std::stop_token& stop);

  const Result<ImdsOptions> options_;
  const CredentialTools tools_;
};

Result<CredentialAnswer> InstanceRole::fetch(std::stop_token stop) {
  using State = ImdsSession::State;
  if (!options_) return options_.error();
  ImdsSession session(*options_, tools_);
  LEAT_TRY(const State state, session.open(stop));
  if (state == State::kOpen) return ask_role(session, stop);
  std::string why = why_closed(state, *options_);
  if (state == State::kTooFar) {
    return denied(std::move(why));
  }
  return CredentialAnswer::none(std::move(why));
}

Result<CredentialAnswer> InstanceRole::ask_role(ImdsSession& session,
                                                const std::stop_token& stop) {
  const std::array<std::string_view, 1> secrets = {session.token()};
  LEAT_TRY(const HttpReply roles, session.get(kRolePath, stop));
  if (roles.status == 404) {
    return CredentialAnswer::none(
        "the instance has no role; attach an instance profile to it");
  }
  std::string_view role = roles.body;
  role = role.substr(0, role.find_first_of("\r\n"));
  if (!is_success(roles.status) || role.empty() ||
      role.size() > kMostRoleBytes || !consists_of(role, "+=,.@_-")) {
    return Error(is_success(roles.status) ? ErrorCode::kUnavailable
                                          : code_of_status(roles.status),
                 fmt::format("asked for the name of the role it answers HTTP "
                             "{}, without one",
                             roles.status));
  }
  LEAT_TRY(const HttpReply reply,
           session.get(std::string(kRolePath).append(role), stop));
  if (!is_success(reply.status)) {
    return Error(
        code_of_status(reply.status),
        fmt::format("asked for credentials of role {} it answers HTTP "
                    "{}{}",
                    role, reply.status, json_refusal(reply.body, secrets)));
  }
  LEAT_TRY(TimedCredentials found,
           parse_json_credentials(reply.body, {}, reply.header("date"), secrets,
                                  tools_));
  return CredentialAnswer{std::move(found)};
}

}  // namespace

Result<ImdsOptions> imds_options(const AwsProfile& profile, const Env& env) {
  ImdsOptions options;
  options.is_disabled = is_ignoring_case(
      value_of(env, "AWS_EC2_METADATA_DISABLED").value_or(""), "true");
  const auto mode =
      setting(profile, env, "AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE",
              "ec2_metadata_service_endpoint_mode");
  const bool is_ipv6 = mode && is_ignoring_case(*mode, "ipv6");
  options.endpoint = is_ipv6 ? kEndpointIpv6 : kEndpoint;
  if (auto own = setting(profile, env, "AWS_EC2_METADATA_SERVICE_ENDPOINT",
                         "ec2_metadata_service_endpoint")) {
    LEAT_TRY(const Endpoint endpoint,
             parse_endpoint({*own, "AWS_EC2_METADATA_SERVICE_ENDPOINT"}));
    options.endpoint = endpoint.url();
  }
  options.timeout = std::chrono::seconds(
      number_within(setting(profile, env, "AWS_METADATA_SERVICE_TIMEOUT",
                            "metadata_service_timeout"),
                    1, 60));
  options.attempts =
      number_within(setting(profile, env, "AWS_METADATA_SERVICE_NUM_ATTEMPTS",
                            "metadata_service_num_attempts"),
                    1, 20);
  return options;
}

Result<HttpReply> ImdsSession::send(const HttpRequest& request, int attempts,
                                    const std::stop_token& stop) {
  return ask_repeatedly(tools_, request, options_.timeout, Proxy::kNone,
                        attempts, stop);
}

Result<ImdsSession::State> ImdsSession::open(const std::stop_token& stop) {
  if (options_.is_disabled) return State::kDisabled;
  HttpRequest request;
  request.method = "PUT";
  request.url = options_.endpoint + "/latest/api/token";
  request.headers = {"x-aws-ec2-metadata-token-ttl-seconds: 21600"};
  const Result<HttpReply> reply = send(request, options_.attempts, stop);
  if (reply && is_success(reply->status)) {
    token_ = reply->body;
    if (!token_.empty() && token_.size() <= kMostImdsTokenBytes &&
        is_header_word(token_)) {
      return State::kOpen;
    }
    return unavailable("{} answers, but not as the metadata service does",
                       options_.endpoint);
  }
  if (reply && reply->status < 500) return State::kDisabled;
  if (reply) {
    return unavailable("asked for a token it answers HTTP {}", reply->status);
  }
  if (stop.stop_requested()) return reply.error();
  // Replies to anything but that PUT travel as far as they must: if anything
  // answers this GET, even with 401, it is a service that we cannot get a token
  // of.
  HttpRequest probe;
  probe.url = options_.endpoint + "/latest/meta-data/";
  const Result<HttpReply> heard = send(probe, 1, stop);
  return heard ? State::kTooFar : State::kAbsent;
}

Result<HttpReply> ImdsSession::get(std::string_view path,
                                   const std::stop_token& stop) {
  HttpRequest request;
  request.url = fmt::format("{}/latest/{}", options_.endpoint, path);
  request.headers = {"x-aws-ec2-metadata-token: " + token_};
  return send(request, options_.attempts, stop);
}

std::string why_closed(ImdsSession::State state, const ImdsOptions& options) {
  switch (state) {
    case ImdsSession::State::kOpen:
      return "it answers";
    case ImdsSession::State::kAbsent:
      return fmt::format(
          "nobody answers at {} (not an EC2 instance, or it is blocked)",
          url_for_people(options.endpoint));
    case ImdsSession::State::kTooFar:
      return fmt::format(
          "the metadata service at {} is there, but its reply to the request "
          "for a token does not arrive: this is a container and the "
          "instance's hop limit is 1. Raise it: aws ec2 "
          "modify-instance-metadata-options --instance-id ID "
          "--http-put-response-hop-limit 2",
          url_for_people(options.endpoint));
    case ImdsSession::State::kDisabled:
      return options.is_disabled
                 ? std::string("AWS_EC2_METADATA_DISABLED is set")
                 : fmt::format(
                       "what answers at {} gives no IMDSv2 token: it is "
                       "switched off, or is not EC2's",
                       url_for_people(options.endpoint));
  }
  return {};
}

std::unique_ptr<CredentialProvider> instance_role(Result<ImdsOptions> options,
                                                  CredentialTools tools) {
  return std::make_unique<InstanceRole>(std::move(options), std::move(tools));
}

}  // namespace leat
