#include "leat/store/s3/credentials/json_reply.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "leat/store/cloud/expiration.h"
#include "leat/store/http/shown_text.h"
#include "leat/store/s3/credentials/static_keys.h"

namespace leat {
namespace {

using Json = nlohmann::json;

Error bad(std::string message) {
  return Error(ErrorCode::kPermissionDenied, std::move(message));
}

/// Null where it is none: nothing here throws.
Json parse(std::string_view text) {
  Json parsed = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  return parsed.is_object() ? parsed : Json();
}

/// The text of that name; empty if it is absent, null or no text.
std::string text_of(const Json& object, std::string_view name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>()
                                                     : std::string();
}

std::string refusal(const Json& object,
                    std::span<const std::string_view> secrets) {
  if (!object.is_object()) return {};
  std::string code = text_of(object, "Code");
  if (code.empty()) code = text_of(object, "code");
  std::string message = text_of(object, "Message");
  if (message.empty()) message = text_of(object, "message");
  if (code.empty() && message.empty()) return {};
  return fmt::format(" ({}{}{})", shown_text(code, secrets),
                     code.empty() || message.empty() ? "" : ": ",
                     shown_text(message, secrets));
}

Result<std::optional<TimePoint>> expiry_of(const Json& object,
                                           const JsonForm& form,
                                           std::string_view date,
                                           const CredentialTools& tools) {
  const std::string text = text_of(object, "Expiration");
  if (text.empty()) {
    if (!form.needs_expiration) return std::optional<TimePoint>();
    return bad("the answer has no Expiration");
  }
  const auto expiration = parse_iso8601(text);
  if (!expiration) {
    return bad(
        "the Expiration in the answer is no time such as "
        "2024-02-29T12:00:00Z");
  }
  return std::optional(expiry_on_our_clock(*expiration, date, tools));
}

}  // namespace

std::string json_refusal(std::string_view text,
                         std::span<const std::string_view> secrets) {
  return refusal(parse(text), secrets);
}

Result<TimedCredentials> parse_json_credentials(
    std::string_view text, const JsonForm& form, std::string_view date,
    std::span<const std::string_view> secrets, const CredentialTools& tools) {
  const Json object = parse(text);
  if (object.is_null()) return bad("the answer is no JSON object");
  if (form.needs_version_1) {
    const auto version = object.find("Version");
    if (version == object.end() || *version != 1) {
      return bad("the answer does not say \"Version\": 1");
    }
  }
  const std::string code = text_of(object, "Code");
  if (!code.empty() && code != "Success") {
    return bad("it refuses" + refusal(object, secrets));
  }
  TimedCredentials found{{text_of(object, "AccessKeyId"),
                          text_of(object, "SecretAccessKey"),
                          text_of(object, form.token_name)}};
  if (found.keys.access_key_id.empty() ||
      found.keys.secret_access_key.empty()) {
    return bad("the answer has no AccessKeyId or no SecretAccessKey" +
               refusal(object, secrets));
  }
  LEAT_TRY_VOID(check_keys(found.keys, "the answer"));
  LEAT_TRY(found.expires_at, expiry_of(object, form, date, tools));
  return found;
}

}  // namespace leat
