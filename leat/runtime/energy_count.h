// The energy of this machine, as far as it can be read.
#pragma once
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "leat/base/clock.h"
#include "leat/base/mutex.h"
#include "leat/runtime/accelerator_energy.h"
#include "leat/runtime/energy.h"

namespace leat {

/// The energy of this machine since construction. A driver may take a second to
/// find its accelerators, so a thread asks it, and then ends.
///
/// Threads: any.
class EnergyCount {
 public:
  struct Joules {
    std::optional<double> processors;
    std::optional<double> accelerators;
  };

  /// As the meters take them; tests pass others.
  explicit EnergyCount(const std::string& library = "libnvidia-ml.so.1",
                       std::filesystem::path powercap = "/sys/class/powercap");
  /// Without the accelerators' while they are being looked for.
  Joules now();
  /// Reads if the last reading is a minute old: see EnergyMeter. Call it every
  /// few minutes; it is cheap.
  void keep(TimePoint at);

 private:
  Joules read() LEAT_REQUIRES(mutex_);

  Mutex mutex_;
  TimePoint read_at_ LEAT_GUARDED_BY(mutex_){};
  EnergyMeter processors_ LEAT_GUARDED_BY(mutex_);
  std::unique_ptr<AcceleratorEnergyMeter> accelerators_ LEAT_GUARDED_BY(mutex_);
  std::jthread search_;  // Last: joined before the rest dies.
};

}  // namespace leat
