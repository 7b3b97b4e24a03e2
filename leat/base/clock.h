// Time, from outside: everything that asks the time is given a Clock.
#pragma once
#include <atomic>
#include <chrono>

namespace leat {

using Nanoseconds = std::chrono::nanoseconds;
/// A point on the monotonic clock.
using TimePoint =
    std::chrono::time_point<std::chrono::steady_clock, Nanoseconds>;

constexpr double to_seconds(Nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}
/// REQUIRES: less than 292 years.
constexpr Nanoseconds from_seconds(double seconds) {
  return std::chrono::duration_cast<Nanoseconds>(
      std::chrono::duration<double>(seconds));
}

/// Tells the time. Threads: any.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimePoint now() const = 0;
};

/// The machine's monotonic clock.
class SteadyClock final : public Clock {
 public:
  TimePoint now() const override {
    return std::chrono::time_point_cast<Nanoseconds>(
        std::chrono::steady_clock::now());
  }
};

/// A clock that moves when told to, for tests.
class FakeClock final : public Clock {
 public:
  TimePoint now() const override {
    return TimePoint(Nanoseconds(now_.load(std::memory_order_acquire)));
  }
  void advance(Nanoseconds by) {
    now_.fetch_add(by.count(), std::memory_order_acq_rel);
  }

 private:
  std::atomic<Nanoseconds::rep> now_ = 0;
};

}  // namespace leat
