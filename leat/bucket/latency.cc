#include "leat/bucket/latency.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "leat/base/errors.h"
#include "leat/base/hash.h"
#include "leat/base/text.h"
#include "leat/base/units.h"

namespace leat {
namespace {

constexpr Nanoseconds kMost = std::chrono::hours(1);
constexpr double kMostSigma = 3.0;

/// In (0, 1]: its logarithm is finite.
double above_zero(std::uint64_t bits) {
  return (double(bits >> 11) + 1.0) * 0x1.0p-53;
}

Error wrong(std::string_view text) {
  return invalid(
      "latency {} is neither a duration such as 55ms nor "
      "lognormal:MEDIAN,SIGMA such as lognormal:110ms,0.5 (at most an hour, a "
      "sigma of at most 3)",
      text);
}

}  // namespace

Nanoseconds Latency::draw(std::uint64_t seed, std::uint64_t n) const {
  if (sigma_ == 0.0) return median_;
  // Box and Muller: two uniform numbers make a normal one.
  const std::uint64_t bits = mix64(mix64(seed) ^ n);
  const double radius = std::sqrt(-2.0 * std::log(above_zero(bits)));
  const double angle = 2.0 * std::numbers::pi * above_zero(mix64(bits));
  const double delay =
      double(median_.count()) * std::exp(sigma_ * radius * std::cos(angle));
  return Nanoseconds(Nanoseconds::rep(std::min(delay, double(kMost.count()))));
}

Result<Latency> parse_latency(std::string_view text) {
  constexpr std::string_view kLognormal = "lognormal:";
  std::string_view median_text = text;
  double sigma = 0.0;
  if (text.starts_with(kLognormal)) {
    const std::size_t comma = text.find(',');
    if (comma == std::string_view::npos) return wrong(text);
    median_text = text.substr(kLognormal.size(), comma - kLognormal.size());
    const auto told = number_from<double>(text.substr(comma + 1));
    if (!told || !(*told >= 0.0) || *told > kMostSigma) return wrong(text);
    sigma = *told;
  }
  const auto median = parse_duration(median_text);
  if (!median || *median > kMost) return wrong(text);
  return Latency::lognormal(*median, sigma);
}

}  // namespace leat
