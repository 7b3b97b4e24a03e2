// The dates of HTTP headers.
#pragma once
#include <optional>
#include <string_view>

#include "leat/store/s3/aws/sigv4.h"

namespace leat {

/// Reads "Fri, 24 May 2013 00:00:00 GMT".
std::optional<WallTime> parse_http_date(std::string_view text);

}  // namespace leat
