#include "leat/index/refresh.h"

#include "leat/base/errors.h"
#include "leat/base/units.h"

namespace leat {

Result<Refresh> Refresh::parse(std::string_view text) {
  constexpr std::string_view kIfOlder = "if-older-than:";
  if (text == "auto") return automatic();
  if (text == "never") return never();
  if (text == "always") return always();
  if (text.starts_with(kIfOlder)) {
    const auto age = parse_duration(text.substr(kIfOlder.size()));
    if (age && *age >= std::chrono::seconds(1)) {
      return if_older_than(std::chrono::floor<std::chrono::seconds>(*age));
    }
  }
  return invalid(
      "refresh is \"auto\", \"never\", \"always\" or \"if-older-than:AGE\" "
      "with an age of a second or more such as 30m, 12h or 1d; it was \"{}\"",
      text);
}

}  // namespace leat
