// The Last-Modified header.
#pragma once
#include <chrono>
#include <string_view>

namespace leat {

/// Reads "Fri, 24 May 2013 00:00:00 GMT"; the epoch for anything else.
std::chrono::sys_seconds parse_last_modified(std::string_view value);

}  // namespace leat
