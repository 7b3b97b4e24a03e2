// The CO2 of electricity, from leat/engine/carbon.toml or the user's own table.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "leat/base/result.h"

namespace leat {

/// The emissions of a kWh in a region.
struct Carbon {
  std::string region;  ///< Empty: nobody said where the machine is.
  /// Grams of CO2 equivalent: one number, or one for each hour of the day, UTC.
  std::vector<double> grams_per_kwh = {};
  std::string source = {};
  std::string as_of = {};
};

/// The shipped figure of a region: "eu-west-1", "europe-west4", "DEU", "world".
///
/// Errors:
///   kInvalidArgument  no such region
Result<Carbon> carbon_of(std::string_view region);

/// The same for a user's table, in the format of carbon.toml, where a region
/// may also have a list of 24 numbers. `name` names the text in messages.
///
/// Errors:
///   kInvalidArgument  it is not such a text; else as above
Result<Carbon> carbon_of(std::string_view region, std::string_view text,
                         const std::string& name);

/// The mean over a run that began at `began`, in seconds since 1970, and took
/// `seconds`.
/// REQUIRES: a region; seconds >= 0.
double mean_grams_per_kwh(const Carbon& carbon, double began, double seconds);

}  // namespace leat
