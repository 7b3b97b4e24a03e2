// Times as S3 writes them.
#pragma once
#include <cstdint>
#include <string>

namespace leat {

/// "2013-05-24T00:00:00.000Z", from nanoseconds since 1970.
std::string iso_date(std::int64_t nanoseconds);

}  // namespace leat
