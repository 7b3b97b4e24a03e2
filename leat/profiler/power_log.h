// The machine's power draw while a run was measured.
#pragma once
#include <condition_variable>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <thread>
#include <vector>

#include "leat/base/clock.h"
#include "leat/runtime/accelerator_energy.h"
#include "leat/runtime/energy.h"

namespace leat {

/// A counter of energy, read at some time.
struct EnergyReading {
  TimePoint at;
  double joules = 0;
};

/// The mean power from `begin` to `end`, in watts, from readings in order of
/// time; between two, the counter is taken to rise evenly. None where they do
/// not reach that far, or `end` is not after `begin`.
std::optional<double> mean_watts(std::span<const EnergyReading> readings,
                                 TimePoint begin, TimePoint end);

/// The power of all parts that can be read, for all programs together; none for
/// a part that cannot be read.
struct Watts {
  std::optional<double> processors;
  std::optional<double> accelerators;
};

/// Reads the counters of this machine's energy ten times a second, so that
/// somebody who says later when he was measured can be told what that took.
///
/// Threads: one; it reads in a thread of its own, if there is a counter.
class PowerLog {
 public:
  PowerLog();
  ~PowerLog();
  PowerLog(const PowerLog&) = delete;
  PowerLog& operator=(const PowerLog&) = delete;

  /// Reads once more and ends reading. Returns the power drawn meanwhile.
  Watts stop_and_tell(TimePoint begin, TimePoint end);

 private:
  void run(const std::stop_token& stop);
  void read();

  // Used by one thread at a time: the reader until it has been joined.
  EnergyMeter processors_;
  AcceleratorEnergyMeter accelerators_;
  std::vector<EnergyReading> of_processors_;
  std::vector<EnergyReading> of_accelerators_;

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::jthread reader_;  // Last: joined before the rest dies.
};

}  // namespace leat
