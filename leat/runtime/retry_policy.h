// How often, and after what wait, a failed operation is retried.
#pragma once
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>

#include "leat/base/clock.h"
#include "leat/base/hash.h"

namespace leat {

struct RetryOptions {
  /// Tries in all, including the first; at least 1. Nullopt: as many as
  /// `patience` allows.
  std::optional<std::uint32_t> max_attempts = std::nullopt;
  /// How long something is tried again after it first failed.
  Nanoseconds patience = std::chrono::minutes(5);
  /// The same for one of many, while the others succeed.
  Nanoseconds lone_patience = std::chrono::minutes(1);
  /// The longest wait before the second try; doubles with each further try.
  Nanoseconds base_backoff = std::chrono::milliseconds(100);
  Nanoseconds most_backoff = std::chrono::seconds(20);
  /// The longest wait of one of many, while the others succeed; and of a few,
  /// while nothing does.
  Nanoseconds lone_backoff = std::chrono::seconds(1);
  /// While nothing succeeds, all failed operations together are
  /// tried this often.
  double tries_per_second = 16;
  /// How long what has never answered is tried: with the last try, under 3 s.
  Nanoseconds start_patience = std::chrono::milliseconds(2500);
  /// How long what has never answered is tried where it does not even refuse:
  /// with the last try of a connection, or the one of a reply, about 30 s.
  Nanoseconds silent_patience = std::chrono::seconds(22);
  /// While nothing succeeds, the log says so at these intervals, and first
  /// before 10 s are over.
  Nanoseconds say_every = std::chrono::milliseconds(9500);
};

/// Exponential back-off with full jitter: before try n + 1, a wait drawn
/// uniformly from [0, min(most_backoff, base_backoff * 2^(n - 1))].
///
/// Full jitter spreads the retries of many clients that failed together; see
/// "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
/// Threads: any.
class RetryPolicy {
 public:
  RetryPolicy(RetryOptions options, std::uint64_t seed)
      : options_(options), seed_(seed) {}

  const RetryOptions& options() const { return options_; }

  bool allows_another(std::uint32_t attempts_made) const {
    return !options_.max_attempts || attempts_made < *options_.max_attempts;
  }

  /// The wait after `attempts_made` consecutive failures, at least 1; no longer
  /// than `bound`.
  Nanoseconds draw_backoff(std::uint32_t attempts_made,
                           Nanoseconds bound = Nanoseconds::max()) {
    return draw(std::min(longest_backoff(attempts_made), bound));
  }

  /// Uniformly from [0, most].
  Nanoseconds draw(Nanoseconds most) {
    const auto bound = static_cast<std::uint64_t>(most.count());
    const std::uint64_t draw =
        mix64(seed_ + draws_.fetch_add(1, std::memory_order_relaxed));
    return Nanoseconds(static_cast<Nanoseconds::rep>(draw % (bound + 1)));
  }

  Nanoseconds longest_backoff(std::uint32_t attempts_made) const {
    Nanoseconds longest = options_.base_backoff;
    for (std::uint32_t i = 1; i < attempts_made; ++i) {
      // Compared before doubling, so that it cannot overflow.
      if (longest >= options_.most_backoff / 2) return options_.most_backoff;
      longest *= 2;
    }
    return std::min(longest, options_.most_backoff);
  }

 private:
  const RetryOptions options_;
  const std::uint64_t seed_;
  std::atomic<std::uint64_t> draws_ = 0;
};

}  // namespace leat
