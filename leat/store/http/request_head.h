// The head of an HTTP/1.1 request, as text.
#pragma once
#include <string>

#include "leat/base/result.h"
#include "leat/store/http/http_client.h"
#include "leat/store/http/http_url.h"

namespace leat {

/// Errors:
///   kInvalidArgument  a header would end its line, and smuggle another
Result<void> check_headers(const HttpRequest& request);

/// Request line and headers (RFC 9112). `url` is that of the request, split.
/// REQUIRES: check_headers(request).
std::string request_head(const HttpRequest& request, const HttpUrl& url);

}  // namespace leat
