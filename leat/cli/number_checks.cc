#include "leat/cli/number_checks.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <string>

#include "leat/base/text.h"
#include "leat/base/units.h"

namespace leat {
namespace {

/// All of `text`, or nothing.
template <class Number>
bool reads_as(const std::string& text, Number& number) {
  const auto read = number_from<Number>(text);
  if (read) number = *read;
  return read.has_value();
}

/// Without a name, CLI11 shows nothing of it in --help.
template <class Check>
CLI::Validator validator(Check check) {
  return CLI::Validator(std::move(check), "");
}

/// The parser's error, or nothing.
template <class Value>
std::string complaint(const Result<Value>& parsed) {
  return parsed ? std::string() : parsed.error().message();
}

}  // namespace

CLI::Validator count_between(std::uint64_t least, std::uint64_t most) {
  return validator([least, most](std::string& text) {
    std::uint64_t number = 0;
    if (reads_as(text, number) && number >= least && number <= most) {
      text = fmt::format("{}", number);  // Without the zeros of 0042.
      return std::string();
    }
    return fmt::format("{} is not a whole number from {} to {}", text, least,
                       most);
  });
}

CLI::Validator amount_up_to(double most, bool is_positive) {
  return validator([most, is_positive](const std::string& text) {
    double number = 0;
    if (reads_as(text, number) && std::isfinite(number) && number <= most &&
        (is_positive ? number > 0 : number >= 0)) {
      return std::string();
    }
    return fmt::format("{} is not a number {} 0{} to {:.0f}", text,
                       is_positive ? "above" : "from",
                       is_positive ? ", up" : "", most);
  });
}

CLI::Validator amount_between(double least, double most) {
  return validator([least, most](const std::string& text) {
    double number = 0;
    if (reads_as(text, number) && number >= least && number <= most) {
      return std::string();
    }
    return fmt::format("{} is not a number from {:.0f} to {:.0f}", text, least,
                       most);
  });
}

CLI::Validator size_in_bytes() {
  return validator(
      [](const std::string& text) { return complaint(parse_bytes(text)); });
}

CLI::Validator duration_in_units() {
  return validator(
      [](const std::string& text) { return complaint(parse_duration(text)); });
}

}  // namespace leat
