// The meaning of an HTTP status for a caller.
#pragma once
#include <string_view>

#include "leat/base/error.h"
#include "leat/store/http/http_client.h"

namespace leat {

constexpr bool is_success(int status) { return status >= 200 && status < 300; }

/// The code for a status that is not a success:
///   401 403                kPermissionDenied
///   404 410                kNotFound
///   412                    kCorrupt: not the version that was asked for
///   429 503 509            kThrottled
///   408, all other 5xx     kUnavailable
///   any other              kInvalidArgument
ErrorCode error_code_of(int status);

/// "GET https://host/path: HTTP 403 Forbidden (the server refuses ...)". The
/// URL is shown without its query. `detail`, if any, is the server's message:
/// see shown_text().
Error error_from_reply(const HttpReply& reply, std::string_view method,
                       std::string_view url, std::string_view detail = {});

}  // namespace leat
