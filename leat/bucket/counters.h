// Counts of a bucket's requests, and how well it kept its own delays.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>

#include "leat/base/clock.h"
#include "leat/base/mutex.h"

namespace leat {

/// Counts durations in buckets 1.6 % wide, so that quantiles cost no memory.
class DurationHistogram {
 public:
  void add(Nanoseconds duration);
  /// The duration that a part `q` in [0, 1] of all is not above; 0 if none.
  Nanoseconds quantile(double q) const;
  Nanoseconds max() const { return max_; }

 private:
  static constexpr int kSteps = 64;  // Per power of two.
  std::array<std::uint64_t, 64 * kSteps> counts_{};
  std::uint64_t total_ = 0;
  Nanoseconds max_{0};
};

enum class RequestKind : std::uint8_t {
  kGet,
  kList,
  kHead,
  kPut,
  kDelete,
  kOther,
  kCount
};
/// The name in fault scripts and messages: GET LIST HEAD PUT DELETE POST.
std::string_view to_string(RequestKind kind);

/// Threads: any.
class BucketCounters {
 public:
  /// 160 MB of keys and ranges.
  static constexpr std::size_t kMostRemembered = 4'000'000;
  explicit BucketCounters(std::size_t most_remembered = kMostRemembered)
      : most_remembered_(most_remembered) {}

  void begin(RequestKind kind);
  void fault();
  /// `object` identifies key and range of a GET that was answered in full.
  void served(std::uint64_t object, std::uint64_t bytes);
  /// Bytes of a GET that was cut.
  void cut(std::uint64_t bytes);
  void lateness(Nanoseconds late);
  void end();

  /// Sets everything to zero but the requests in flight.
  void reset();

  struct Connections {
    std::uint64_t open = 0;
    std::uint64_t accepted = 0;
  };
  /// One JSON object. "keys_not_remembered" counts the GETs of which nobody can
  /// say whether they repeat others, as too many keys were served before.
  std::string json(Connections connections) const;

 private:
  struct Counts {
    std::array<std::uint64_t, std::size_t(RequestKind::kCount)> requests{};
    std::uint64_t bytes = 0;
    std::uint64_t repeated = 0;
    std::uint64_t not_remembered = 0;
    std::uint64_t faults = 0;
    std::uint64_t most_in_flight = 0;
    DurationHistogram lateness;
    std::unordered_set<std::uint64_t> served;
  };

  const std::size_t most_remembered_;

  mutable Mutex mutex_;
  Counts counts_ LEAT_GUARDED_BY(mutex_);
  std::uint64_t in_flight_ LEAT_GUARDED_BY(mutex_) = 0;
};

}  // namespace leat
