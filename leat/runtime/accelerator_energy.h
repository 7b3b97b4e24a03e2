// The energy of this machine's accelerators, if NVML tells it.
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace leat {

/// Reads the counters of all of NVIDIA's devices that this process sees,
/// through the driver's own library, which is looked up when the program runs:
/// no build needs it. The counters are of the whole device, for all programs.
///
/// Threads: one at a time.
class AcceleratorEnergyMeter {
 public:
  /// Begins to count. `library` as dlopen(3) finds it.
  explicit AcceleratorEnergyMeter(
      const std::string& library = "libnvidia-ml.so.1");
  ~AcceleratorEnergyMeter();
  AcceleratorEnergyMeter(const AcceleratorEnergyMeter&) = delete;
  AcceleratorEnergyMeter& operator=(const AcceleratorEnergyMeter&) = delete;

  /// Joules since it began. None where there is no device, or one of them does
  /// not tell (those before Volta have no counter), or its counter fell.
  std::optional<double> joules() const;

 private:
  using Device = void*;

  /// Joules since the driver was loaded, for all devices.
  std::optional<std::vector<double>> read() const;

  void* handle_ = nullptr;
  int (*shutdown_)() = nullptr;
  int (*energy_)(Device, unsigned long long*) = nullptr;
  std::vector<Device> devices_;
  std::optional<std::vector<double>> first_;
};

}  // namespace leat
