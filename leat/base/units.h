// Sizes and durations as people write them.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "leat/base/clock.h"
#include "leat/base/result.h"

namespace leat {

/// Reads "64MiB", "90MB", "1.5 GiB", "4096", "200gb": bytes.
///
/// KB MB GB TB are powers of 1000, KiB MiB GiB TiB (and K M G T) powers of
/// 1024; case does not matter.
/// Errors:
///   kInvalidArgument  not a number and a unit, negative, or past 2^63
Result<std::uint64_t> parse_bytes(std::string_view text);

/// Reads "55ms", "1.5s", "200us", "10ns", "2m", "1h", "3d"; a bare "0" too.
///
/// Errors:
///   kInvalidArgument  not a number and a unit, negative, or past 292 years
Result<Nanoseconds> parse_duration(std::string_view text);

/// "64 MiB", "1.5 GiB", "17 B": at most one decimal.
std::string format_bytes(std::uint64_t bytes);

/// "55 ms", "1.2 s", "3.4 us".
std::string format_duration(Nanoseconds duration);

constexpr std::uint64_t kKiB = 1024;
constexpr std::uint64_t kMiB = 1024 * kKiB;
constexpr std::uint64_t kGiB = 1024 * kMiB;

}  // namespace leat
