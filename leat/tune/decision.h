// A change and its reason, as a line for people to read.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace leat {

/// The settings that a tuner, a cache, an agent or a store's pace may change.
enum class Setting : std::uint8_t {
  kThreads,
  kInFlight,
  kLookahead,
  kPartBytes,
  kBytesPerSecond,
  /// The most reads a second that a store gets which throttles. 0: no bound.
  kRequestsPerSecond,
  kRamBytes,
  kDiskBytes,
  /// The share of the samples that a cache keeps decoded: 0 to 1.
  kDecodedShare,
};

/// "threads", "max_in_flight", …: spelled as the option of that name.
std::string_view to_string(Setting setting);

struct Decision {
  double at_seconds = 0;  ///< Since the decider started.
  std::string job;        ///< Empty if there is only one.
  Setting setting = Setting::kThreads;
  double before = 0;
  double after = 0;
  std::string reason;  ///< "decode is the bottleneck: 4 threads at 97 %"
  /// The gain in samples a second, as a ratio less one: 0.25 is a quarter more.
  std::optional<double> expected_gain;
  std::optional<double> found_gain;  ///< Once it has been measured.
};

/// "12.3 s threads 4 -> 6: decode is the bottleneck … (expected +40 %, found
/// +37 %)"; "12.3 s threads stays at 4: …" if nothing changes.
std::string to_string(const Decision& decision);

/// The same as a JSON object: at_seconds, job, setting, before, after, reason,
/// expected_gain and found_gain (null if there is none).
std::string to_json(const Decision& decision);

}  // namespace leat
