#include "leat/store/gcs/token_sources.h"

#include <fmt/format.h>

#include <array>
#include <optional>
#include <utility>
#include <variant>

#include "leat/base/buffer.h"
#include "leat/base/errors.h"
#include "leat/store/cloud/ask.h"
#include "leat/store/cloud/endpoint.h"
#include "leat/store/cloud/expiration.h"
#include "leat/store/cloud/http_date.h"
#include "leat/store/cloud/small_file.h"
#include "leat/store/cloud/token.h"
#include "leat/store/gcs/google_file.h"
#include "leat/store/gcs/jwt.h"
#include "leat/store/http/http_url.h"
#include "leat/store/http/status.h"

namespace leat {
namespace {

constexpr std::size_t kMostFileBytes = 64 << 10;
constexpr std::string_view kScope =
    "https://www.googleapis.com/auth/devstorage.read_write";
/// The identity pool's own token may do nothing but become somebody.
constexpr std::string_view kCloudScope =
    "https://www.googleapis.com/auth/cloud-platform";
constexpr std::chrono::seconds kTimeout{10};
constexpr std::chrono::seconds kMetadataTimeout{3};
constexpr int kAttempts = 3;
constexpr std::chrono::minutes kClockNoise{1};

Result<TimedCredentials> ask_as(const ServiceAccount& account,
                                const CredentialTools& tools,
                                const std::stop_token& stop) {
  std::string jwt;
  const auto post = [&](WallTime now) -> Result<HttpReply> {
    LEAT_TRY(jwt, signed_jwt(account, kScope, now));
    return post_form(
        account.token_uri,
        {{"grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"},
         {"assertion", jwt}},
        tools, stop);
  };
  const WallTime now = std::chrono::floor<std::chrono::seconds>(tools.now());
  LEAT_TRY(HttpReply reply, post(now));
  // A statement that is signed with a wrong clock's time is refused.
  const auto theirs = parse_server_time(reply.header("date"));
  if (!is_success(reply.status) && theirs &&
      std::chrono::abs(*theirs - now) > kClockNoise) {
    LEAT_TRY(reply, post(*theirs));
  }
  const std::array<std::string_view, 1> secrets = {jwt};
  return token_from_reply(reply, url_for_people(account.token_uri), secrets,
                          tools);
}

Result<TimedCredentials> ask_as(const AuthorizedUser& user,
                                const CredentialTools& tools,
                                const std::stop_token& stop) {
  const std::array<std::string_view, 2> secrets = {user.client_secret,
                                                   user.refresh_token};
  LEAT_TRY(const HttpReply reply,
           post_form(user.token_uri,
                     {{"grant_type", "refresh_token"},
                      {"client_id", user.client_id},
                      {"client_secret", user.client_secret},
                      {"refresh_token", user.refresh_token}},
                     tools, stop));
  Result<TimedCredentials> found =
      token_from_reply(reply, url_for_people(user.token_uri), secrets, tools);
  if (found || found.error().code() != ErrorCode::kPermissionDenied) {
    return found;
  }
  return denied(found.error().message() +
                "; run `gcloud auth application-default login` again");
}

/// The token of the other issuer, as its source gives it.
Result<std::string> subject_token(const ExternalAccount& account,
                                  const CredentialTools& tools,
                                  const std::stop_token& stop) {
  std::string text;
  if (!account.file.empty()) {
    LEAT_TRY(auto read, read_small_file(account.file, kMostFileBytes));
    if (!read) {
      return denied("credential_source names {}, which is not there",
                    account.file);
    }
    text = *std::move(read);
  } else {
    HttpRequest request;
    request.url = account.url;
    for (const auto& [name, value] : account.headers) {
      request.headers.push_back(name + ": " + value);
    }
    LEAT_TRY(HttpReply reply, ask_repeatedly(tools, request, kTimeout,
                                             Proxy::kNone, kAttempts, stop));
    if (!is_success(reply.status)) {
      return Error(code_of_status(reply.status),
                   fmt::format("credential_source {} answers HTTP {}",
                               url_for_people(account.url), reply.status));
    }
    text = std::move(reply.body);
  }
  if (!account.token_field.empty()) {
    text = text_in_json(text, account.token_field);
  }
  while (text.ends_with('\n') || text.ends_with('\r')) text.pop_back();
  if (text.empty()) return denied("credential_source gives no token");
  return text;
}

/// Exchanges the token of an identity pool for one of a service account.
Result<TimedCredentials> impersonate(const std::string& url,
                                     const std::string& token,
                                     const CredentialTools& tools,
                                     const std::stop_token& stop) {
  const std::string body =
      fmt::format(R"({{"scope":["{}"],"lifetime":"3600s"}})", kScope);
  HttpRequest request;
  request.method = "POST";
  request.url = url;
  request.headers = {"Content-Type: application/json",
                     "Authorization: Bearer " + token};
  request.body = as_bytes(body);
  LEAT_TRY(const HttpReply reply,
           ask_repeatedly(tools, request, kTimeout, Proxy::kFromEnvironment,
                          kAttempts, stop));
  const std::string asked = url_for_people(url);
  if (!is_success(reply.status)) {
    const std::array<std::string_view, 1> secrets = {token};
    return Error(code_of_status(reply.status),
                 fmt::format("{} answers HTTP {}{}", asked, reply.status,
                             token_refusal(reply.body, secrets)));
  }
  const auto ends = parse_iso8601(text_in_json(reply.body, "expireTime"));
  if (!ends) return denied("{} gives no expireTime", asked);
  LEAT_TRY(TimedCredentials found,
           token_of(text_in_json(reply.body, "accessToken"), {}, tools));
  found.expires_at = expiry_on_our_clock(*ends, reply.header("date"), tools);
  return found;
}

Result<TimedCredentials> ask_as(const ExternalAccount& account,
                                const CredentialTools& tools,
                                const std::stop_token& stop) {
  LEAT_TRY(const std::string subject, subject_token(account, tools, stop));
  const bool goes_on = !account.impersonation_url.empty();
  LEAT_TRY(const HttpReply reply,
           post_form(account.token_url,
                     {{"grant_type",
                       "urn:ietf:params:oauth:grant-type:token-exchange"},
                      {"requested_token_type",
                       "urn:ietf:params:oauth:token-type:access_token"},
                      {"audience", account.audience},
                      {"scope", std::string(goes_on ? kCloudScope : kScope)},
                      {"subject_token_type", account.subject_token_type},
                      {"subject_token", subject}},
                     tools, stop));
  const std::array<std::string_view, 1> secrets = {subject};
  LEAT_TRY(TimedCredentials found,
           token_from_reply(reply, url_for_people(account.token_url), secrets,
                            tools));
  if (!goes_on) return found;
  return impersonate(account.impersonation_url, found.keys.bearer_token, tools,
                     stop);
}

Result<GoogleFile> read_google_file(const std::string& path) {
  LEAT_TRY(const auto text, read_small_file(path, kMostFileBytes));
  if (!text) return denied(path + " is not there");
  Result<GoogleFile> file = parse_google_file(*text);
  if (!file) return std::move(file).error().while_doing(path);
  return file;
}

/// Reads the file anew each time, since its key may have been replaced.
class FileSource final : public CredentialProvider {
 public:
  FileSource(std::string path, CredentialTools tools)
      : path_(std::move(path)), tools_(std::move(tools)) {}

  std::string name() const override { return path_; }
  bool is_local() const override { return false; }

  Result<CredentialAnswer> fetch(std::stop_token stop) override {
    LEAT_TRY(const GoogleFile file, read_google_file(path_));
    Result<TimedCredentials> found = std::visit(
        [&](const auto& who) { return ask_as(who, tools_, stop); }, file.who);
    if (!found) {
      return std::move(found).error().while_doing("Google credentials of " +
                                                  path_);
    }
    return CredentialAnswer{*std::move(found)};
  }

 private:
  const std::string path_;
  const CredentialTools tools_;
};

/// The service account of this machine or pod.
class MetadataServer final : public CredentialProvider {
 public:
  MetadataServer(std::string tried, CredentialTools tools)
      : tried_(std::move(tried)), tools_(std::move(tools)) {}

  std::string name() const override { return "the metadata server"; }
  bool is_local() const override { return false; }

  Result<CredentialAnswer> fetch(std::stop_token stop) override {
    const std::string host = value_of(tools_.env, "GCE_METADATA_HOST")
                                 .value_or("metadata.google.internal");
    if (!consists_of(host, ".-_:[]")) {
      return denied("GCE_METADATA_HOST is no host; write HOST or HOST:PORT");
    }
    if (value_of(tools_.env, "NO_GCE_CHECK") == "true") {
      return nobody("NO_GCE_CHECK is set");
    }
    HttpRequest request;
    request.url = fmt::format(
        "http://{}/computeMetadata/v1/instance/service-accounts/default/token",
        host);
    request.headers = {"Metadata-Flavor: Google"};
    Result<HttpReply> reply = ask_repeatedly(tools_, request, kMetadataTimeout,
                                             Proxy::kNone, kAttempts, stop);
    if (stop.stop_requested()) return Error(ErrorCode::kCancelled, "cancelled");
    const bool is_googles =
        reply && reply->header("metadata-flavor") == "Google";
    if (!is_googles && has_answered_) {
      return unavailable("the metadata server at {} answers no more", host);
    }
    if (!is_googles) {
      return nobody(fmt::format("no metadata server answers at {}", host));
    }
    has_answered_ = true;
    LEAT_TRY(
        TimedCredentials found,
        token_from_reply(*reply, "the metadata server at " + host, {}, tools_));
    return CredentialAnswer{std::move(found)};
  }

 private:
  Error nobody(std::string_view why) const {
    return denied(
        "no Google credentials: {}; {}. Run `gcloud auth application-default "
        "login`, or name a key file in GOOGLE_APPLICATION_CREDENTIALS; for a "
        "public bucket use no_sign_request (--no-sign-request)",
        tried_, why);
  }

  const std::string tried_;
  const CredentialTools tools_;
  bool has_answered_ = false;
};

Result<TokenSource> from_file(const std::string& path,
                              const CredentialTools& tools) {
  LEAT_TRY(GoogleFile file, read_google_file(path));
  return TokenSource{std::make_shared<FileSource>(path, tools),
                     std::move(file.project)};
}

/// Empty if the environment names no folder.
std::string default_file(const Env& env) {
  auto folder = value_of(env, "CLOUDSDK_CONFIG");
  if (!folder) {
    folder = value_of(env, "HOME");
    if (folder) *folder += "/.config/gcloud";
  }
  return folder ? *folder + "/application_default_credentials.json" : "";
}

}  // namespace

Result<TokenSource> find_token_source(const CredentialTools& tools) {
  if (const auto named =
          value_of(tools.env, "GOOGLE_APPLICATION_CREDENTIALS")) {
    Result<TokenSource> found = from_file(*named, tools);
    if (found) return found;
    return std::move(found).error().while_doing(
        "GOOGLE_APPLICATION_CREDENTIALS");
  }
  std::string tried = "GOOGLE_APPLICATION_CREDENTIALS is not set";
  if (const std::string path = default_file(tools.env); !path.empty()) {
    LEAT_TRY(const auto there, read_small_file(path, kMostFileBytes));
    if (there) return from_file(path, tools);
    tried += fmt::format("; {} is not there", path);
  }
  return TokenSource{std::make_shared<MetadataServer>(std::move(tried), tools),
                     ""};
}

}  // namespace leat
