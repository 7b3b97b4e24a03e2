#include "leat/store/azure/token_sources.h"

#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "leat/base/errors.h"
#include "leat/store/cloud/ask.h"
#include "leat/store/cloud/endpoint.h"
#include "leat/store/cloud/small_file.h"
#include "leat/store/cloud/token.h"
#include "leat/store/http/http_url.h"
#include "leat/store/http/status.h"

namespace leat {
namespace {

constexpr std::string_view kAuthority = "https://login.microsoftonline.com";
constexpr std::string_view kScope = "https://storage.azure.com/.default";
constexpr std::string_view kImds = "http://169.254.169.254";
constexpr std::size_t kMostFileBytes = 64 << 10;
constexpr std::chrono::seconds kImdsTimeout{3};
constexpr int kAttempts = 3;

/// An application of a tenant, which shows a secret or a token of a file.
class Application final : public CredentialProvider {
 public:
  Application(std::string url, std::string client_id, CredentialTools tools)
      : url_(std::move(url)),
        client_id_(std::move(client_id)),
        tools_(std::move(tools)) {}

  std::string name() const override { return "the application's secret"; }
  bool is_local() const override { return false; }

  Result<CredentialAnswer> fetch(std::stop_token stop) override {
    QueryPairs form = {{"grant_type", "client_credentials"},
                       {"client_id", client_id_},
                       {"scope", std::string(kScope)}};
    std::string secret;
    if (const auto given = value_of(tools_.env, "AZURE_CLIENT_SECRET")) {
      secret = *given;
      form.emplace_back("client_secret", secret);
    } else {
      LEAT_TRY(secret, federated_token());
      form.emplace_back(
          "client_assertion_type",
          "urn:ietf:params:oauth:client-assertion-type:jwt-bearer");
      form.emplace_back("client_assertion", secret);
    }
    LEAT_TRY(const HttpReply reply, post_form(url_, form, tools_, stop));
    const std::array<std::string_view, 1> secrets = {secret};
    Result<TimedCredentials> found =
        token_from_reply(reply, url_for_people(url_), secrets, tools_);
    if (!found)
      return std::move(found).error().while_doing("Azure credentials");
    return CredentialAnswer{*std::move(found)};
  }

 private:
  /// Read anew each time: Kubernetes replaces the file every hour.
  Result<std::string> federated_token() const {
    const std::string path =
        value_of(tools_.env, "AZURE_FEDERATED_TOKEN_FILE").value_or("");
    LEAT_TRY(auto text, read_small_file(path, kMostFileBytes));
    while (text && (text->ends_with('\n') || text->ends_with('\r'))) {
      text->pop_back();
    }
    if (text && !text->empty()) return *std::move(text);
    return denied("AZURE_FEDERATED_TOKEN_FILE names {}, which is {}", path,
                  text ? "empty" : "not there");
  }

  const std::string url_;
  const std::string client_id_;
  const CredentialTools tools_;
};

/// The identity of this virtual machine, asked from its metadata service.
class ManagedIdentity final : public CredentialProvider {
 public:
  explicit ManagedIdentity(CredentialTools tools) : tools_(std::move(tools)) {}

  std::string name() const override { return "the managed identity"; }
  bool is_local() const override { return false; }

  Result<CredentialAnswer> fetch(std::stop_token stop) override {
    const std::string host =
        value_of(tools_.env, "AZURE_POD_IDENTITY_AUTHORITY_HOST")
            .value_or(std::string(kImds));
    QueryPairs query = {{"api-version", "2018-02-01"},
                        {"resource", "https://storage.azure.com/"}};
    if (auto client = value_of(tools_.env, "AZURE_CLIENT_ID")) {
      query.emplace_back("client_id", *std::move(client));
    }
    HttpRequest request;
    request.url = fmt::format("{}/metadata/identity/oauth2/token?{}", host,
                              canonical_query(query));
    request.headers = {"Metadata: true"};
    const Result<HttpReply> reply = ask_repeatedly(
        tools_, request, kImdsTimeout, Proxy::kNone, kAttempts, stop);
    if (stop.stop_requested()) return Error(ErrorCode::kCancelled, "cancelled");
    if (!reply && has_answered_) return reply.error();
    if (!reply) {
      return denied(
          "no Azure credentials: AZURE_STORAGE_CONNECTION_STRING, "
          "AZURE_STORAGE_ACCOUNT_KEY, AZURE_STORAGE_SAS_TOKEN, "
          "AZURE_CLIENT_SECRET and AZURE_FEDERATED_TOKEN_FILE are not set, and "
          "nobody answers at {} (not a virtual machine of Azure). Set one of "
          "them; for a public container use no_sign_request "
          "(--no-sign-request)",
          url_for_people(host));
    }
    LEAT_TRY(
        TimedCredentials found,
        token_from_reply(*reply, "the managed identity's service", {}, tools_));
    has_answered_ = true;
    return CredentialAnswer{std::move(found)};
  }

 private:
  const CredentialTools tools_;
  bool has_answered_ = false;
};

}  // namespace

Result<std::shared_ptr<CredentialProvider>> find_azure_token_source(
    const CredentialTools& tools) {
  const auto tenant = value_of(tools.env, "AZURE_TENANT_ID");
  const auto client = value_of(tools.env, "AZURE_CLIENT_ID");
  const bool has_secret =
      value_of(tools.env, "AZURE_CLIENT_SECRET").has_value() ||
      value_of(tools.env, "AZURE_FEDERATED_TOKEN_FILE").has_value();
  if (!has_secret) return {std::make_shared<ManagedIdentity>(tools)};
  if (!tenant || !client || !consists_of(*tenant, "-.")) {
    return invalid(
        "AZURE_CLIENT_SECRET or AZURE_FEDERATED_TOKEN_FILE is set, and "
        "AZURE_TENANT_ID or AZURE_CLIENT_ID is not, or is none; set all three");
  }
  std::string authority = value_of(tools.env, "AZURE_AUTHORITY_HOST")
                              .value_or(std::string(kAuthority));
  while (authority.ends_with('/')) authority.pop_back();
  LEAT_TRY_VOID(check_token_url(authority, "AZURE_AUTHORITY_HOST"));
  return {std::make_shared<Application>(
      fmt::format("{}/{}/oauth2/v2.0/token", authority, *tenant), *client,
      tools)};
}

}  // namespace leat
