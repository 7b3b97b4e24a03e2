#include "leat/store/s3/credentials/container.h"

#include <fmt/format.h>

#include <array>
#include <optional>
#include <string>
#include <utility>

#include "leat/base/errors.h"
#include "leat/store/cloud/ask.h"
#include "leat/store/cloud/small_file.h"
#include "leat/store/http/http_url.h"
#include "leat/store/http/status.h"
#include "leat/store/s3/credentials/json_reply.h"
#include "leat/store/s3/credentials/static_keys.h"

namespace leat {
namespace {

constexpr std::string_view kEcsHost = "http://169.254.170.2";
constexpr std::chrono::seconds kTimeout{2};
constexpr int kAttempts = 3;
constexpr std::size_t kMostAuthorizationBytes = 16 << 10;

constexpr const char* kRelativeUri = "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI";
constexpr const char* kFullUri = "AWS_CONTAINER_CREDENTIALS_FULL_URI";
constexpr const char* kToken = "AWS_CONTAINER_AUTHORIZATION_TOKEN";
constexpr const char* kTokenFile = "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE";

bool is_of_this_machine(const HttpUrl& url) {
  if (url.host == "localhost" || url.host == "::1") return true;
  if (url.host_is_address && url.host.starts_with("127.")) return true;
  return url.host == "169.254.170.2" || url.host == "169.254.170.23" ||
         url.host == "fd00:ec2::23";
}

Result<std::string> url_to_ask(const Env& env) {
  if (const auto path = value_of(env, kRelativeUri)) {
    if (!path->starts_with('/') || !is_header_word(*path)) {
      return invalid("{} is no path; ECS sets it", kRelativeUri);
    }
    return std::string(kEcsHost).append(*path);
  }
  std::string full = *value_of(env, kFullUri);
  const Result<HttpUrl> url = split_http_url(full);
  if (!url) return invalid("{} is no URL to ask", kFullUri);
  if (url->scheme.size() == 4 && !is_of_this_machine(*url)) {
    return invalid(
        "{} names the host {}, which is asked over https only; without TLS it "
        "may be a loopback address, 169.254.170.2, 169.254.170.23 or "
        "fd00:ec2::23",
        kFullUri, url->host);
  }
  return full;
}

/// Empty if none is set.
Result<std::string> authorization_token(const Env& env) {
  std::string token;
  if (const auto path = value_of(env, kTokenFile)) {
    LEAT_TRY(auto text, read_small_file(*path, kMostAuthorizationBytes));
    if (!text) {
      return invalid("{} names {}, which is not there", kTokenFile, *path);
    }
    token = *std::move(text);
    while (token.ends_with('\n') || token.ends_with('\r')) token.pop_back();
  } else {
    token = value_of(env, kToken).value_or("");
  }
  for (const char c : token) {
    // A blank may stand between "Basic" and what follows.
    if (c != ' ' && !is_header_word({&c, 1})) {
      return invalid("the token of {} holds what no header can hold",
                     kTokenFile);
    }
  }
  return token;
}

class ContainerRole final : public CredentialProvider {
 public:
  explicit ContainerRole(CredentialTools tools) : tools_(std::move(tools)) {}

  std::string name() const override { return "the container's role"; }
  bool is_local() const override {
    return !value_of(tools_.env, kRelativeUri) &&
           !value_of(tools_.env, kFullUri);
  }

  Result<CredentialAnswer> fetch(std::stop_token stop) override {
    if (is_local()) {
      return CredentialAnswer::none(
          fmt::format("neither {} nor {} is set", kRelativeUri, kFullUri));
    }
    LEAT_TRY(std::string url, url_to_ask(tools_.env));
    LEAT_TRY(const std::string token, authorization_token(tools_.env));
    const std::array<std::string_view, 1> secrets = {token};
    HttpRequest request;
    request.headers = {"Accept: application/json"};
    if (!token.empty()) request.headers.push_back("Authorization: " + token);
    request.url = url;
    // Not through a proxy, unless it is another machine's.
    const Proxy proxy =
        url.starts_with("https:") ? Proxy::kFromEnvironment : Proxy::kNone;
    LEAT_TRY(const HttpReply reply,
             ask_repeatedly(tools_, request, kTimeout, proxy, kAttempts, stop));
    const std::string asked = url_for_people(url);
    if (!is_success(reply.status)) {
      return Error(code_of_status(reply.status),
                   fmt::format("{} answers HTTP {}{}", asked, reply.status,
                               json_refusal(reply.body, secrets)));
    }
    Result<TimedCredentials> found = parse_json_credentials(
        reply.body, {}, reply.header("date"), secrets, tools_);
    if (!found) return std::move(found).error().while_doing(asked);
    return CredentialAnswer{*std::move(found)};
  }

 private:
  const CredentialTools tools_;
};

}  // namespace

std::unique_ptr<CredentialProvider> container_role(CredentialTools tools) {
  return std::make_unique<ContainerRole>(std::move(tools));
}

}  // namespace leat
