#include "leat/store/cloud/token.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "leat/base/buffer.h"
#include "leat/base/errors.h"
#include "leat/base/text.h"
#include "leat/store/cloud/ask.h"
#include "leat/store/cloud/json_text.h"
#include "leat/store/http/http_url.h"
#include "leat/store/http/shown_text.h"
#include "leat/store/http/status.h"

namespace leat {
namespace {

using Json = nlohmann::json;

constexpr std::chrono::seconds kTimeout{10};
constexpr int kAttempts = 3;
constexpr std::chrono::seconds kLongestLife = std::chrono::hours(24 * 365);

bool is_loopback(const HttpUrl& url) {
  return url.host == "localhost" || url.host == "::1" ||
         (url.host_is_address && url.host.starts_with("127."));
}

/// "error.status": the text of a member of a member.
std::string text_at(const Json& object, std::string_view path) {
  const std::size_t dot = path.find('.');
  if (dot == std::string_view::npos) return json_text(object, path);
  const Json* const inner = json_member(object, path.substr(0, dot));
  return inner == nullptr ? std::string()
                          : text_at(*inner, path.substr(dot + 1));
}

/// A number, or the text of one.
std::optional<std::int64_t> seconds_of(const Json& object,
                                       std::string_view name) {
  const Json* const found = json_member(object, name);
  if (found == nullptr) return std::nullopt;
  if (found->is_number_integer()) return found->get<std::int64_t>();
  return number_from<std::int64_t>(json_text(object, name));
}

}  // namespace

Result<void> check_token_url(std::string_view url, std::string_view where) {
  const Result<HttpUrl> parts = split_http_url(url);
  if (parts && (parts->is_tls || is_loopback(*parts))) return {};
  return invalid(
      "{} is no https URL, and secrets are sent over https only; correct it",
      where);
}

std::string text_in_json(std::string_view json, std::string_view path) {
  return text_at(parse_json_text(json), path);
}

std::string token_refusal(std::string_view body, Secrets secrets) {
  const Json object = parse_json_text(body);
  std::string code = text_at(object, "error");
  if (code.empty()) code = text_at(object, "error.status");
  std::string message = text_at(object, "error_description");
  if (message.empty()) message = text_at(object, "error.message");
  if (code.empty() && message.empty()) return {};
  return fmt::format(" ({}{}{})", shown_text(code, secrets),
                     code.empty() || message.empty() ? "" : ": ",
                     shown_text(message, secrets));
}

Result<TimedCredentials> token_of(std::string token,
                                  std::chrono::seconds lifetime,
                                  const CredentialTools& tools) {
  if (token.empty() || !is_header_word(token)) {
    return denied(
        "the token that was given is empty, or holds what no header can hold");
  }
  TimedCredentials found;
  found.keys.bearer_token = std::move(token);
  found.expires_at =
      tools.clock->now() + Nanoseconds(std::min(lifetime, kLongestLife));
  return found;
}

Result<TimedCredentials> token_from_reply(const HttpReply& reply,
                                          std::string_view asked,
                                          Secrets secrets,
                                          const CredentialTools& tools) {
  if (!is_success(reply.status)) {
    return Error(code_of_status(reply.status),
                 fmt::format("asked for a token, {} answers HTTP {}{}", asked,
                             reply.status, token_refusal(reply.body, secrets)));
  }
  const Json object = parse_json_text(reply.body);
  const auto lifetime = seconds_of(object, "expires_in");
  std::string token = text_at(object, "access_token");
  if (token.empty() || !lifetime || *lifetime <= 0) {
    return denied(
        "what {} answers is no token: access_token or expires_in is missing",
        asked);
  }
  return token_of(std::move(token), std::chrono::seconds(*lifetime), tools);
}

Result<HttpReply> post_form(std::string url, const QueryPairs& form,
                            const CredentialTools& tools,
                            const std::stop_token& stop) {
  const std::string body = canonical_query(form);
  HttpRequest request;
  request.method = "POST";
  request.url = std::move(url);
  request.headers = {"Content-Type: application/x-www-form-urlencoded",
                     "Accept: application/json"};
  request.body = as_bytes(body);
  return ask_repeatedly(tools, request, kTimeout, Proxy::kFromEnvironment,
                        kAttempts, stop);
}

}  // namespace leat
