// Times as HTTP and S3 write them.
#pragma once
#include <cstdint>
#include <string>

namespace leat {

/// "Fri, 24 May 2013 00:00:00 GMT", from seconds since 1970.
std::string http_date(std::int64_t seconds);
/// "2013-05-24T00:00:00.000Z", from nanoseconds since 1970.
std::string iso_date(std::int64_t nanoseconds);

}  // namespace leat
