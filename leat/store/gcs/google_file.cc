#include "leat/store/gcs/google_file.h"

#include "leat/base/errors.h"
#include "leat/store/cloud/ask.h"
#include "leat/store/cloud/json_text.h"
#include "leat/store/cloud/token.h"
#include "leat/store/http/shown_text.h"

namespace leat {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kTokenUri = "https://oauth2.googleapis.com/token";
constexpr std::string_view kStsUrl = "https://sts.googleapis.com/v1/token";

std::string text_or(const Json& object, std::string_view name,
                    std::string_view other) {
  std::string text = json_text(object, name);
  return text.empty() ? std::string(other) : text;
}

/// The member of that name, which has to be there.
Result<std::string> needed(const Json& object, std::string_view name) {
  std::string text = json_text(object, name);
  if (!text.empty()) return text;
  return denied("it has no \"{}\"; download it again", name);
}

Result<ServiceAccount> service_account(const Json& file) {
  ServiceAccount found;
  LEAT_TRY(found.client_email, needed(file, "client_email"));
  LEAT_TRY(found.private_key, needed(file, "private_key"));
  found.private_key_id = json_text(file, "private_key_id");
  found.token_uri = text_or(file, "token_uri", kTokenUri);
  LEAT_TRY_VOID(check_token_url(found.token_uri, "token_uri"));
  return found;
}

Result<AuthorizedUser> authorized_user(const Json& file) {
  AuthorizedUser found;
  LEAT_TRY(found.client_id, needed(file, "client_id"));
  LEAT_TRY(found.client_secret, needed(file, "client_secret"));
  LEAT_TRY(found.refresh_token, needed(file, "refresh_token"));
  found.token_uri = text_or(file, "token_uri", kTokenUri);
  LEAT_TRY_VOID(check_token_url(found.token_uri, "token_uri"));
  return found;
}

Result<void> read_source(const Json& source, ExternalAccount& found) {
  found.file = json_text(source, "file");
  found.url = json_text(source, "url");
  if (found.file.empty() == found.url.empty()) {
    return denied(
        "its credential_source is neither a file nor a URL, which are the two "
        "that are read; for a source on AWS or an executable, run in an "
        "environment with the metadata server, or use a service account's key");
  }
  if (const auto headers = source.find("headers");
      headers != source.end() && headers->is_object()) {
    for (const auto& [name, value] : headers->items()) {
      const std::string text =
          value.is_string() ? value.get<std::string>() : std::string();
      if (!is_header_word(name) || !is_header_word(text)) {
        return denied("a header of its credential_source cannot be sent");
      }
      found.headers.emplace_back(name, text);
    }
  }
  const auto format = source.find("format");
  if (format == source.end() || json_text(*format, "type") != "json") return {};
  LEAT_TRY(found.token_field, needed(*format, "subject_token_field_name"));
  return {};
}

Result<ExternalAccount> external_account(const Json& file) {
  ExternalAccount found;
  LEAT_TRY(found.audience, needed(file, "audience"));
  LEAT_TRY(found.subject_token_type, needed(file, "subject_token_type"));
  found.token_url = text_or(file, "token_url", kStsUrl);
  LEAT_TRY_VOID(check_token_url(found.token_url, "token_url"));
  found.impersonation_url =
      json_text(file, "service_account_impersonation_url");
  if (!found.impersonation_url.empty()) {
    LEAT_TRY_VOID(check_token_url(found.impersonation_url,
                                  "service_account_impersonation_url"));
  }
  const auto source = file.find("credential_source");
  LEAT_TRY_VOID(
      read_source(source == file.end() ? Json::object() : *source, found));
  return found;
}

}  // namespace

Result<GoogleFile> parse_google_file(std::string_view text) {
  const Json file = parse_json_text(text);
  if (!file.is_object()) return denied("it is no JSON object");
  GoogleFile found;
  found.project =
      text_or(file, "quota_project_id", json_text(file, "project_id"));
  const std::string type = json_text(file, "type");
  if (type == "service_account") {
    LEAT_TRY(found.who, service_account(file));
  } else if (type == "authorized_user") {
    LEAT_TRY(found.who, authorized_user(file));
  } else if (type == "external_account") {
    LEAT_TRY(found.who, external_account(file));
  } else {
    return denied(
        "its type is '{}'; service_account, authorized_user and "
        "external_account are read",
        shown_text(type));
  }
  return found;
}

}  // namespace leat
