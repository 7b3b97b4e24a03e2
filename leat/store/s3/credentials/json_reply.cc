#include "leat/store/s3/credentials/json_reply.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>

#include "leat/base/errors.h"
#include "leat/store/cloud/expiration.h"
#include "leat/store/cloud/json_text.h"
#include "leat/store/http/shown_text.h"
#include "leat/store/s3/credentials/static_keys.h"

namespace leat {
namespace {

using Json = nlohmann::json;

std::string refusal(const Json& object,
                    std::span<const std::string_view> secrets) {
  std::string code = json_text(object, "Code");
  if (code.empty()) code = json_text(object, "code");
  std::string message = json_text(object, "Message");
  if (message.empty()) message = json_text(object, "message");
  if (code.empty() && message.empty()) return {};
  return fmt::format(" ({}{}{})", shown_text(code, secrets),
                     code.empty() || message.empty() ? "" : ": ",
                     shown_text(message, secrets));
}

Result<std::optional<TimePoint>> expiry_of(const Json& object,
                                           const JsonForm& form,
                                           std::string_view date,
                                           const CredentialTools& tools) {
  const std::string text = json_text(object, "Expiration");
  if (text.empty()) {
    if (!form.needs_expiration) return std::optional<TimePoint>();
    return denied("the answer has no Expiration");
  }
  const auto expiration = parse_iso8601(text);
  if (!expiration) {
    return denied(
        "the Expiration in the answer is no time such as 2024-02-29T12:00:00Z");
  }
  return std::optional(expiry_on_our_clock(*expiration, date, tools));
}

}  // namespace

std::string json_refusal(std::string_view text,
                         std::span<const std::string_view> secrets) {
  return refusal(parse_json_text(text), secrets);
}

Result<TimedCredentials> parse_json_credentials(
    std::string_view text, const JsonForm& form, std::string_view date,
    std::span<const std::string_view> secrets, const CredentialTools& tools) {
  const Json object = parse_json_text(text);
  if (!object.is_object()) return denied("the answer is no JSON object");
  if (form.needs_version_1) {
    const Json* const version = json_member(object, "Version");
    if (version == nullptr || *version != 1) {
      return denied("the answer does not say \"Version\": 1");
    }
  }
  const std::string code = json_text(object, "Code");
  if (!code.empty() && code != "Success") {
    return denied("it refuses" + refusal(object, secrets));
  }
  TimedCredentials found{{json_text(object, "AccessKeyId"),
                          json_text(object, "SecretAccessKey"),
                          json_text(object, form.token_name)}};
  if (found.keys.access_key_id.empty() ||
      found.keys.secret_access_key.empty()) {
    return denied("the answer has no AccessKeyId or no SecretAccessKey" +
                  refusal(object, secrets));
  }
  LEAT_TRY_VOID(check_keys(found.keys, "the answer"));
  LEAT_TRY(found.expires_at, expiry_of(object, form, date, tools));
  return found;
}

}  // namespace leat
