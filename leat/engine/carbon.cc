#include "leat/engine/carbon.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "leat/base/check.h"
#include "leat/base/errors.h"
#include "leat/engine/toml_reader.h"

namespace leat {

/// The text of carbon.toml, which the build embeds.
extern const std::string_view kCarbonToml;

namespace {

constexpr std::size_t kHoursOfDay = 24;
constexpr double kSecondsOfHour = 3600;
/// Electricity from coal alone is near 1,000.
constexpr double kMostGrams = 10000;

Result<std::vector<double>> grams_in(const toml::node& node,
                                     const std::string& where) {
  std::vector<double> grams;
  const auto read = [&](const toml::node& one) {
    const auto number = one.value<double>();
    const bool is_possible = number && *number >= 0 && *number <= kMostGrams;
    if (is_possible) grams.push_back(*number);
    return is_possible;
  };
  bool is_right = false;
  if (const toml::array* hours = node.as_array()) {
    is_right = hours->size() == kHoursOfDay;
    for (const toml::node& hour : *hours) is_right = is_right && read(hour);
  } else {
    is_right = read(node);
  }
  if (is_right) return grams;
  return invalid(
      "{}: must be grams for a kWh, from 0 to {:.0f}: one number, or a list of "
      "24, for the hours of a day",
      where, kMostGrams);
}

}  // namespace

Result<Carbon> carbon_of(std::string_view region) {
  return carbon_of(region, kCarbonToml, "carbon.toml");
}

Result<Carbon> carbon_of(std::string_view region, std::string_view text,
                         const std::string& name) {
  LEAT_TRY(const toml::table root, parse_toml(text, name));
  std::string known;
  for (const auto& [key, node] : root) {
    const std::string where = fmt::format("{}, {}", name, key.str());
    if (!node.is_table()) {
      return invalid(where + ": must be a table");
    }
    TomlReader reader(*node.as_table(), where);
    Carbon carbon{.region = std::string(region)};
    carbon.as_of = reader.text("as_of", "");
    carbon.source = reader.text("source");
    const toml::table* all = reader.table("grams_per_kwh");
    LEAT_TRY_VOID(reader.done());
    if (all == nullptr) continue;
    for (const auto& [place, grams] : *all) {
      known += fmt::format("{}{}", known.empty() ? "" : ", ", place.str());
    }
    const toml::node* found = all->get(region);
    if (found == nullptr) continue;
    LEAT_TRY(carbon.grams_per_kwh,
             grams_in(*found, fmt::format("{}, {}", where, region)));
    return carbon;
  }
  return invalid("{}: no region \"{}\": there are {}", name, region,
                 known.empty() ? "none" : known);
}

double mean_grams_per_kwh(const Carbon& carbon, double began, double seconds) {
  const std::vector<double>& grams = carbon.grams_per_kwh;
  LEAT_CHECK(!grams.empty() && seconds >= 0);
  if (grams.size() == 1) return grams.front();
  const auto hour_of = [](double time) {
    return static_cast<std::size_t>(
        std::fmod(std::floor(time / kSecondsOfHour), kHoursOfDay));
  };
  began = std::fmod(std::max(began, 0.0), kHoursOfDay * kSecondsOfHour);
  if (seconds == 0) return grams[hour_of(began)];
  // Whole days have the mean of a day; what is left is shorter than one.
  const double day = kHoursOfDay * kSecondsOfHour;
  const double days = std::floor(seconds / day);
  double sum =
      days * kSecondsOfHour * std::accumulate(grams.begin(), grams.end(), 0.0);
  const double end = began + (seconds - days * day);
  for (double at = began; at < end;) {
    const double next =
        std::min(end, (std::floor(at / kSecondsOfHour) + 1) * kSecondsOfHour);
    sum += grams[hour_of(at)] * (next - at);
    at = next;
  }
  return sum / seconds;
}

}  // namespace leat
