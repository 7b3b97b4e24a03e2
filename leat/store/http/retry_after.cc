#include "leat/store/http/retry_after.h"

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "leat/base/text.h"
#include "leat/store/http/last_modified.h"

namespace leat {
namespace {

using std::chrono::seconds;
using std::chrono::sys_seconds;

/// Each form of a date begins with the name of a day.
std::optional<sys_seconds> date_in(std::string_view text) {
  const bool is_named =
      !text.empty() && ((text[0] | 0x20) >= 'a' && (text[0] | 0x20) <= 'z');
  const sys_seconds date = is_named ? parse_last_modified(text) : sys_seconds();
  return date == sys_seconds() ? std::nullopt : std::optional(date);
}

}  // namespace

std::optional<Nanoseconds> retry_after(const HttpReply& reply,
                                       sys_seconds now) {
  if (reply.status != 429 && reply.status != 503) return std::nullopt;
  const std::string_view said = reply.header("retry-after");
  if (said.empty()) return std::nullopt;
  seconds wait{0};
  if (said.find_first_not_of("0123456789") == std::string_view::npos) {
    // More digits than a number holds are a long time, too.
    const auto told = number_from<std::uint32_t>(said);
    wait = told ? seconds(*told) : kMostRetryAfter;
  } else if (const auto date = date_in(said)) {
    wait = *date - date_in(reply.header("date")).value_or(now);
  }
  if (wait <= seconds(0)) return std::nullopt;
  return std::min(wait, kMostRetryAfter);
}

}  // namespace leat
