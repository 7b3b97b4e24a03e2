#include "leat/bucket/iso_date.h"

#include <fmt/format.h>

#include <ctime>

namespace leat {
namespace {

std::tm utc(std::int64_t seconds) {
  const std::time_t time = seconds;
  std::tm parts{};
  ::gmtime_r(&time, &parts);
  return parts;
}

}  // namespace

std::string iso_date(std::int64_t nanoseconds) {
  constexpr std::int64_t kPerSecond = 1'000'000'000;
  std::int64_t seconds = nanoseconds / kPerSecond;
  std::int64_t rest = nanoseconds % kPerSecond;
  if (rest < 0) {
    rest += kPerSecond;
    --seconds;
  }
  const std::tm t = utc(seconds);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z",
                     t.tm_year + 1900, t.tm_mon + 1, t.tm_mday, t.tm_hour,
                     t.tm_min, t.tm_sec, rest / 1'000'000);
}

}  // namespace leat
