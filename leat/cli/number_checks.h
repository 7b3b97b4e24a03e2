// Checks of numbers that options accept: a wrong one is refused by the option's
// name.
#pragma once
#include <CLI/CLI.hpp>

#include <cstdint>

namespace leat {

/// Every number has one of these. A wrong one exits with 2, as "--epochs: -1 is
/// not a whole number from 1 to 1000000".

/// A whole number within a range, in base 10; a sign or a fraction is refused.
/// Give it to Option::transform(): CLI11 would read 010 as 8, and this makes
/// it 10. Option::check() would lose that.
CLI::Validator count_between(std::uint64_t least, std::uint64_t most);

/// Those below go to Option::check().

/// A finite number within a range; with `is_positive`, above 0.
CLI::Validator amount_up_to(double most, bool is_positive = false);

/// A number within a range; NaN is refused, as CLI::Range does not.
CLI::Validator amount_between(double least, double most);

/// Accepts what parse_bytes() does: "64MiB".
CLI::Validator size_in_bytes();

/// Accepts what parse_duration() does: "55ms".
CLI::Validator duration_in_units();

inline constexpr std::uint64_t kMostEpochs = 1000000;
inline constexpr double kMostDollars = 1e12;
/// Dollars that a node costs in an hour, as the engine has it.
inline constexpr double kMostHourly = 1e6;

}  // namespace leat
