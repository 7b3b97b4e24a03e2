#include "leat/store/cloud/expiration.h"

#include <algorithm>
#include <charconv>

#include "leat/store/cloud/http_date.h"

namespace leat {
namespace {

using std::chrono::seconds;

constexpr seconds kNoise{60};

/// Exactly `digits` of them at `at`.
std::optional<int> number(std::string_view text, std::size_t at,
                          std::size_t digits) {
  if (text.size() < at + digits) return std::nullopt;
  int value = 0;
  for (const char c : text.substr(at, digits)) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + (c - '0');
  }
  return value;
}

/// "Z", "+01:00" or "-0730"; how far it is ahead of UTC.
std::optional<seconds> parse_offset(std::string_view text) {
  if (text == "Z" || text == "z") return seconds(0);
  if (text.size() != 5 && text.size() != 6) return std::nullopt;
  if (text[0] != '+' && text[0] != '-') return std::nullopt;
  if (text.size() == 6 && text[3] != ':') return std::nullopt;
  const auto hours = number(text, 1, 2);
  const auto minutes = number(text, text.size() - 2, 2);
  if (!hours || !minutes || *hours > 23 || *minutes > 59) return std::nullopt;
  const seconds offset =
      std::chrono::hours(*hours) + std::chrono::minutes(*minutes);
  return text[0] == '+' ? offset : -offset;
}

}  // namespace

std::optional<std::chrono::sys_seconds> parse_iso8601(std::string_view text) {
  constexpr std::string_view kForm = "0000-00-00T00:00:00";
  if (text.size() <= kForm.size() || text.size() > 40) return std::nullopt;
  for (std::size_t i = 0; i < kForm.size(); ++i) {
    const bool is_separator = kForm[i] != '0';
    if (is_separator && text[i] != kForm[i]) return std::nullopt;
  }
  const auto year = number(text, 0, 4);
  const auto month = number(text, 5, 2);
  const auto day = number(text, 8, 2);
  const auto hour = number(text, 11, 2);
  const auto minute = number(text, 14, 2);
  const auto second = number(text, 17, 2);
  if (!year || !month || !day || !hour || !minute || !second) {
    return std::nullopt;
  }
  std::string_view rest = text.substr(kForm.size());
  if (rest.front() == '.') {
    rest.remove_prefix(1);
    const auto digits =
        std::min(rest.find_first_not_of("0123456789"), rest.size());
    if (digits == 0) return std::nullopt;
    rest.remove_prefix(digits);
  }
  const auto offset = parse_offset(rest);
  const std::chrono::year_month_day date(
      std::chrono::year(*year),
      std::chrono::month(static_cast<unsigned>(*month)),
      std::chrono::day(static_cast<unsigned>(*day)));
  if (!offset || !date.ok() || *hour > 23 || *minute > 59 || *second > 60) {
    return std::nullopt;
  }
  return std::chrono::sys_days(date) + std::chrono::hours(*hour) +
         std::chrono::minutes(*minute) + seconds(*second) - *offset;
}

TimePoint expiry_on_our_clock(std::chrono::sys_seconds expiration,
                              std::string_view date,
                              const CredentialTools& tools) {
  // In seconds first: nanoseconds reach no further than the year 2262.
  const std::chrono::system_clock::time_point now = tools.now();
  const auto now_seconds = std::chrono::floor<seconds>(now);
  seconds left = expiration - now_seconds;
  Nanoseconds into_second = now - now_seconds;
  if (const auto theirs = parse_server_time(date);
      theirs &&
      (*theirs - now_seconds > kNoise || now_seconds - *theirs > kNoise)) {
    left = expiration - *theirs;
    into_second = Nanoseconds(0);
  }
  constexpr seconds kMost = std::chrono::hours(24 * 365 * 100);
  left = std::clamp(left, -kMost, kMost);
  return tools.clock->now() + (Nanoseconds(left) - into_second);
}

RefreshTimes refresh_times(Nanoseconds lifetime) {
  return {.renew_before =
              std::min<Nanoseconds>(std::chrono::minutes(5), lifetime / 4),
          .unusable_before =
              std::min<Nanoseconds>(std::chrono::seconds(10), lifetime / 8)};
}

}  // namespace leat
