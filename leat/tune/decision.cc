#include "leat/tune/decision.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "leat/base/units.h"

namespace leat {
namespace {

std::string value_of(Setting setting, double value) {
  switch (setting) {
    case Setting::kPartBytes:
    case Setting::kRamBytes:
    case Setting::kDiskBytes:
      return format_bytes(static_cast<std::uint64_t>(value));
    case Setting::kBytesPerSecond:
      return format_bytes(static_cast<std::uint64_t>(value)) + "/s";
    case Setting::kRequestsPerSecond:
      return value == 0 ? "no bound" : fmt::format("{:.0f}", value);
    case Setting::kDecodedShare:
      return fmt::format("{:.0f} %", 100 * value);
    default:
      return fmt::format("{:.0f}", value);
  }
}

/// For the other settings, 0 says that nothing was decided before.
bool may_be_nothing(Setting setting) {
  return setting != Setting::kThreads && setting != Setting::kInFlight &&
         setting != Setting::kBytesPerSecond;
}

}  // namespace

std::string_view to_string(Setting setting) {
  switch (setting) {
    case Setting::kThreads:
      return "threads";
    case Setting::kInFlight:
      return "max_in_flight";
    case Setting::kLookahead:
      return "lookahead";
    case Setting::kPartBytes:
      return "part_bytes";
    case Setting::kBytesPerSecond:
      return "bandwidth";
    case Setting::kRequestsPerSecond:
      return "requests_per_second";
    case Setting::kRamBytes:
      return "ram";
    case Setting::kDiskBytes:
      return "disk";
    case Setting::kDecodedShare:
      return "decoded_share";
  }
  return "unknown";
}

std::string to_string(const Decision& decision) {
  std::string line = fmt::format("{:.1f} s  ", decision.at_seconds);
  if (!decision.job.empty()) line += decision.job + "  ";
  const std::string after = value_of(decision.setting, decision.after);
  const std::string before =
      decision.before > 0 || may_be_nothing(decision.setting)
          ? value_of(decision.setting, decision.before)
          : "";
  line += fmt::format("{} ", to_string(decision.setting));
  if (before == after) {
    line += "stays at ";
  } else if (!before.empty()) {
    line += before + " -> ";
  }
  line += fmt::format("{}: {}", after, decision.reason);
  if (decision.expected_gain) {
    line += fmt::format(" (expected {:+.0f} %", 100 * *decision.expected_gain);
    if (decision.found_gain) {
      line += fmt::format(", found {:+.0f} %", 100 * *decision.found_gain);
    }
    line += ")";
  }
  return line;
}

std::string to_json(const Decision& decision) {
  const auto or_null =
      [](const std::optional<double>& gain) -> nlohmann::ordered_json {
    if (!gain || !std::isfinite(*gain)) return nullptr;
    return *gain;
  };
  const nlohmann::ordered_json json = {
      {"at_seconds", decision.at_seconds},
      {"job", decision.job},
      {"setting", std::string(to_string(decision.setting))},
      {"before", decision.before},
      {"after", decision.after},
      {"reason", decision.reason},
      {"expected_gain", or_null(decision.expected_gain)},
      {"found_gain", or_null(decision.found_gain)}};
  return json.dump();
}

}  // namespace leat
