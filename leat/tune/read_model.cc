#include "leat/tune/read_model.h"

#include <algorithm>
#include <cmath>

namespace leat {
namespace {

// Lengths nearer to each other than that tell noise, not what a byte takes.
constexpr double kApart = 1.2;
// Parts that are faster by less are as good as longer ones.
constexpr double kAlike = 0.02;

}  // namespace

std::optional<ReadModel> read_model(const StageRates& one,
                                    const StageRates& other) {
  const StageRates& small =
      one.bytes_per_read < other.bytes_per_read ? one : other;
  const StageRates& large =
      one.bytes_per_read < other.bytes_per_read ? other : one;
  if (small.latency_seconds <= 0 || small.bytes_per_read <= 0 ||
      large.bytes_per_read < kApart * small.bytes_per_read) {
    return std::nullopt;
  }
  ReadModel model;
  // A longer read that took no more time: it waits for something other than its
  // bytes.
  model.seconds_per_byte =
      std::max(0.0, (large.latency_seconds - small.latency_seconds) /
                        (large.bytes_per_read - small.bytes_per_read));
  model.latency_seconds =
      std::max(0.0, small.latency_seconds -
                        small.bytes_per_read * model.seconds_per_byte);
  return model;
}

double bytes_a_second(const ReadModel& model, const PartLimits& limits,
                      double read_bytes) {
  const double under_way = std::min(limits.requests * read_bytes, limits.bytes);
  const double seconds = model.seconds(read_bytes);
  return seconds > 0 ? under_way / seconds : 0;
}

std::uint64_t best_part(const ReadModel& model, const PartLimits& limits,
                        std::uint64_t part_bytes, double read_bytes) {
  const auto rate = [&](std::uint64_t part) {
    return bytes_a_second(model, limits,
                          read_bytes * static_cast<double>(part) /
                              static_cast<double>(part_bytes));
  };
  std::uint64_t least = part_bytes;
  while (least / 2 >= kLeastPartBytes) least /= 2;
  double fastest = 0;
  for (std::uint64_t part = least; part <= kMostPartBytes; part *= 2) {
    fastest = std::max(fastest, rate(part));
  }
  std::uint64_t best = least;
  for (std::uint64_t part = least; part <= kMostPartBytes; part *= 2) {
    if (rate(part) >= fastest * (1 - kAlike)) best = part;
  }
  return best;
}

}  // namespace leat
