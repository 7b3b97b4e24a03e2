#include "leat/base/units.h"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <utility>

namespace leat {
namespace {

struct Unit {
  std::string_view name;  // Lower case.
  double factor;
};

constexpr std::array kByteUnits = {
    Unit{"", 1},         Unit{"b", 1},        Unit{"kb", 1e3},
    Unit{"mb", 1e6},     Unit{"gb", 1e9},     Unit{"tb", 1e12},
    Unit{"k", 0x1p10},   Unit{"kib", 0x1p10}, Unit{"m", 0x1p20},
    Unit{"mib", 0x1p20}, Unit{"g", 0x1p30},   Unit{"gib", 0x1p30},
    Unit{"t", 0x1p40},   Unit{"tib", 0x1p40},
};

constexpr std::array kTimeUnits = {
    Unit{"ns", 1},   Unit{"us", 1e3},   Unit{"ms", 1e6},   Unit{"s", 1e9},
    Unit{"m", 60e9}, Unit{"min", 60e9}, Unit{"h", 3600e9}, Unit{"d", 86400e9},
};

// The number in front, times the factor of the unit behind it; negative if the
// text is not of that form.
template <class Units>
double scaled(std::string_view text, const Units& units) {
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, problem] = std::from_chars(text.data(), end, number);
  if (problem != std::errc() || !std::isfinite(number) || number < 0) return -1;
  std::string unit;
  for (const char* c = rest; c != end; ++c) {
    if (*c == ' ' && unit.empty()) continue;
    unit += static_cast<char>(std::tolower(static_cast<unsigned char>(*c)));
  }
  if (number == 0 && unit.empty()) return 0;
  for (const Unit& known : units) {
    if (known.name == unit) return number * known.factor;
  }
  return -1;
}

std::string short_number(double value) {
  std::string text = fmt::format("{:.1f}", value);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text;
}

}  // namespace

Result<std::uint64_t> parse_bytes(std::string_view text) {
  const double bytes = scaled(text, kByteUnits);
  if (bytes < 0 || bytes >= 0x1p63) {
    return Error(
        ErrorCode::kInvalidArgument,
        fmt::format("\"{}\" is not a size; write it as 64MiB or 1.5GB", text));
  }
  return static_cast<std::uint64_t>(std::llround(bytes));
}

Result<Nanoseconds> parse_duration(std::string_view text) {
  const double nanoseconds = scaled(text, kTimeUnits);
  if (nanoseconds < 0 || nanoseconds >= 0x1p63) {
    return Error(
        ErrorCode::kInvalidArgument,
        fmt::format("\"{}\" is not a duration; write it as 55ms or 1.5s",
                    text));
  }
  return Nanoseconds(std::llround(nanoseconds));
}

std::string format_bytes(std::uint64_t bytes) {
  constexpr std::array kNames = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < kNames.size()) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{} {}", short_number(value), kNames[unit]);
}

std::string format_duration(Nanoseconds duration) {
  const double ns = static_cast<double>(duration.count());
  if (ns < 1e3) return fmt::format("{} ns", duration.count());
  if (ns < 1e6) return short_number(ns / 1e3) + " us";
  if (ns < 1e9) return short_number(ns / 1e6) + " ms";
  return short_number(ns / 1e9) + " s";
}

}  // namespace leat
