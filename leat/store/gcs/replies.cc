#include "leat/store/gcs/replies.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>

#include "leat/base/errors.h"
#include "leat/base/text.h"
#include "leat/store/cloud/checks.h"
#include "leat/store/cloud/expiration.h"
#include "leat/store/cloud/json_text.h"
#include "leat/store/http/shown_text.h"
#include "leat/store/http/status.h"

namespace leat {
namespace {

using Json = nlohmann::json;

Error bad(std::string_view why) {
  return corrupt(
      "the server's answer is not that of Google Cloud Storage: {}; check the "
      "endpoint URL",
      why);
}

Result<Json> parse(std::string_view body) {
  if (has_too_many_nodes(body)) return bad("it is too large");
  Json parsed = parse_json_text(body);
  if (!parsed.is_object()) return bad("it is no JSON object");
  return parsed;
}

/// The service writes 64-bit numbers as text.
Result<ObjectInfo> object_of(const Json& json, std::string key) {
  ObjectInfo object{.key = std::move(key)};
  const auto size = number_from<std::uint64_t>(json_text(json, "size"));
  if (!size) return bad("a size is not a number");
  object.size_bytes = *size;
  object.etag = json_text(json, "generation");
  if (!number_from<std::uint64_t>(object.etag)) {
    return bad("a generation is not a number");
  }
  object.modified_at = parse_iso8601(json_text(json, "updated"))
                           .value_or(std::chrono::sys_seconds{});
  return object;
}

std::string remedy(const HttpReply& reply, const GcsAttempt& attempt) {
  const bool is_refused = reply.status == 401 || reply.status == 403;
  if (is_refused && attempt.is_anonymous) {
    return "the bucket is not public, and nobody was named; give credentials "
           "and leave no_sign_request (--no-sign-request) out";
  }
  switch (reply.status) {
    case 401:
      return "Google no longer takes the token; check the credentials";
    case 403:
      return "grant roles/storage.objectViewer on the bucket "
             "(roles/storage.objectUser to write), or use others";
    case 404:
      return "there is no object or bucket of this name; check the spelling "
             "and, if the catalogue is old, index again";
    case 412:
      return "the object changed since it was indexed; index again";
    case 416:
      return "the range runs past the end; if the object shrank, index again";
    default:
      break;
  }
  if (error_code_of(reply.status) == ErrorCode::kThrottled) {
    return "the service asks for fewer requests; lower max_in_flight";
  }
  return error_code_of(reply.status) == ErrorCode::kUnavailable
             ? "the service failed and may recover"
             : "the server does not accept the request";
}

}  // namespace

Result<ListPage> parse_gcs_list(std::string_view body, std::string_view prefix,
                                std::string_view start_after) {
  LEAT_TRY(const Json page, parse(body));
  ListPage found;
  if (const Json* const items = json_member(page, "items");
      items != nullptr && items->is_array()) {
    for (const Json& item : *items) {
      std::string key = json_text(item, "name");
      LEAT_TRY(ObjectInfo object, object_of(item, std::move(key)));
      object.modified_at = {};
      found.objects.push_back(std::move(object));
    }
  }
  if (const Json* const folded = json_member(page, "prefixes");
      folded != nullptr && folded->is_array()) {
    for (const Json& each : *folded) {
      if (!each.is_string()) return bad("a prefix is no text");
      found.common_prefixes.push_back(each.get<std::string>());
    }
  }
  LEAT_TRY_VOID(check_page(found, prefix));
  std::erase_if(found.objects, [start_after](const ObjectInfo& object) {
    return object.key <= start_after;
  });
  found.resume = json_text(page, "nextPageToken");
  return found;
}

Result<ObjectInfo> parse_gcs_object(std::string_view body,
                                    std::string_view key) {
  LEAT_TRY(const Json json, parse(body));
  return object_of(json, std::string(key));
}

Error error_from_gcs(const HttpReply& reply, const GcsAttempt& attempt) {
  const Json body = parse_json_text(reply.body);
  const Json none;
  const Json* error = json_member(body, "error");
  if (error == nullptr) error = &none;
  std::string reason;
  if (const Json* const all = json_member(*error, "errors");
      all != nullptr && all->is_array() && !all->empty()) {
    reason = json_text(all->front(), "reason");
  }
  // Media replies say it in plain text.
  const std::string said =
      body.is_object() ? json_text(*error, "message") : reply.body;

  ErrorCode code = error_code_of(reply.status);
  std::string what_to_do = remedy(reply, attempt);
  if (reason == "rateLimitExceeded" || reason == "userRateLimitExceeded") {
    code = ErrorCode::kThrottled;
    what_to_do = "the service asks for fewer requests; lower max_in_flight";
  } else if (reason == "userProjectMissing") {
    code = ErrorCode::kPermissionDenied;
    what_to_do =
        "the bucket wants the caller's project to pay; give requester_pays "
        "(--requester-pays) and set GOOGLE_CLOUD_PROJECT";
  }
  if (attempt.has_newer) code = ErrorCode::kUnavailable;

  std::string message = fmt::format("{}: HTTP {}", attempt.doing, reply.status);
  const auto shown = [&reply](std::string_view text) {
    return shown_text(text, reply.sent_values);
  };
  if (!reason.empty()) message += " " + shown(reason);
  if (!said.empty() && !said.starts_with('<')) message += ": " + shown(said);
  return Error(code, fmt::format("{} ({})", message, what_to_do));
}

}  // namespace leat
