// The time of day, and the dates of HTTP headers.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace leat {

using WallTime = std::chrono::sys_seconds;

/// The time of day, supplied from outside.
using WallNow = std::function<WallTime()>;
WallTime system_now();

/// Reads "Fri, 24 May 2013 00:00:00 GMT".
std::optional<WallTime> parse_http_date(std::string_view text);

/// The time that a server's Date header tells, to correct our clock by; nullopt
/// if it is no date, or not within the years 2000 to 2199: signatures have no
/// form for the years that a server may make up.
std::optional<WallTime> parse_server_time(std::string_view date);

/// The form of parse_http_date(), from seconds since 1970.
std::string http_date(std::int64_t seconds);

}  // namespace leat
