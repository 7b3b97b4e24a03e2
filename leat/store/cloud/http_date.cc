#include "leat/store/cloud/http_date.h"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <ctime>

namespace leat {
namespace {

std::optional<int> number(std::string_view text) {
  int value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + (c - '0');
  }
  return value;
}

}  // namespace

WallTime system_now() {
  return std::chrono::floor<std::chrono::seconds>(
      std::chrono::system_clock::now());
}

std::optional<WallTime> parse_http_date(std::string_view text) {
  constexpr std::string_view kMonths = "JanFebMarAprMayJunJulAugSepOctNovDec";
  if (text.size() != 29 || !text.ends_with(" GMT") || text[19] != ':' ||
      text[22] != ':') {
    return std::nullopt;
  }
  const auto day = number(text.substr(5, 2));
  const std::size_t month = kMonths.find(text.substr(8, 3));
  const auto year = number(text.substr(12, 4));
  const auto hour = number(text.substr(17, 2));
  const auto minute = number(text.substr(20, 2));
  const auto second = number(text.substr(23, 2));
  if (!day || month == std::string_view::npos || month % 3 != 0 || !year ||
      !hour || !minute || !second) {
    return std::nullopt;
  }
  const std::chrono::year_month_day date(
      std::chrono::year(*year),
      std::chrono::month(static_cast<unsigned>(month / 3 + 1)),
      std::chrono::day(static_cast<unsigned>(*day)));
  if (!date.ok() || *hour > 23 || *minute > 59 || *second > 60) {
    return std::nullopt;
  }
  return std::chrono::sys_days(date) + std::chrono::hours(*hour) +
         std::chrono::minutes(*minute) + std::chrono::seconds(*second);
}

std::optional<WallTime> parse_server_time(std::string_view date) {
  constexpr WallTime kFirst =
      std::chrono::sys_days(std::chrono::year(2000) / 1 / 1);
  constexpr WallTime kEnd =
      std::chrono::sys_days(std::chrono::year(2200) / 1 / 1);
  const auto time = parse_http_date(date);
  return time && *time >= kFirst && *time < kEnd ? time : std::nullopt;
}

// Not strftime: its names follow the locale.
std::string http_date(std::int64_t seconds) {
  constexpr std::array<const char*, 7> kDays{"Sun", "Mon", "Tue", "Wed",
                                             "Thu", "Fri", "Sat"};
  constexpr std::array<const char*, 12> kMonths{"Jan", "Feb", "Mar", "Apr",
                                                "May", "Jun", "Jul", "Aug",
                                                "Sep", "Oct", "Nov", "Dec"};
  const std::time_t time = seconds;
  std::tm t{};
  ::gmtime_r(&time, &t);
  return fmt::format("{}, {:02} {} {} {:02}:{:02}:{:02} GMT",
                     kDays[std::size_t(t.tm_wday)], t.tm_mday,
                     kMonths[std::size_t(t.tm_mon)], t.tm_year + 1900,
                     t.tm_hour, t.tm_min, t.tm_sec);
}

}  // namespace leat
