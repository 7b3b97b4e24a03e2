#include "leat/store/http/status.h"

#include <fmt/format.h>

#include <string>

#include "leat/store/http/http_url.h"
#include "leat/store/http/shown_text.h"

namespace leat {
namespace {

std::string_view remedy(int status) {
  switch (status) {
    case 401:
    case 403:
      return "the server refuses whoever asks; check the credentials and what "
             "they may do";
    case 404:
    case 410:
      return "there is nothing of this name; check the spelling and, if the "
             "catalogue is old, index again";
    case 412:
      return "the object changed since it was indexed; index again";
    case 416:
      return "the range runs past the end; if the object shrank, index again";
    case 429:
    case 503:
    case 509:
      return "the service asks for fewer requests; lower max_in_flight";
    default:
      break;
  }
  if (status >= 300 && status < 400) {
    return "redirects are not followed; use the address the server names";
  }
  if (status == 408 || status >= 500) {
    return "the service failed and may recover";
  }
  return "the server does not accept the request";
}

}  // namespace

ErrorCode error_code_of(int status) {
  switch (status) {
    case 401:
    case 403:
      return ErrorCode::kPermissionDenied;
    case 404:
    case 410:
      return ErrorCode::kNotFound;
    case 412:
      return ErrorCode::kCorrupt;
    case 429:
    case 503:
    case 509:
      return ErrorCode::kThrottled;
    case 408:
      return ErrorCode::kUnavailable;
    default:
      return status >= 500 ? ErrorCode::kUnavailable
                           : ErrorCode::kInvalidArgument;
  }
}

Error error_from_reply(const HttpReply& reply, std::string_view method,
                       std::string_view url, std::string_view detail) {
  std::string message =
      fmt::format("{} {}: HTTP {}", method, url_for_people(url), reply.status);
  if (!detail.empty()) {
    message += ": " + shown_text(detail, reply.sent_values);
  }
  return Error(error_code_of(reply.status),
               fmt::format("{} ({})", message, remedy(reply.status)));
}

}  // namespace leat
