// The energy of this machine's accelerators, if NVML reports it.
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace leat {

/// Reads the counters of all NVIDIA devices that this process sees, through the
/// driver's own library, which is looked up at run time: no build needs it. A
/// counter covers the whole device, for all programs.
///
/// Threads: one at a time.
class AcceleratorEnergyMeter {
 public:
  /// Begins to count. `library` is a name for dlopen(3).
  explicit AcceleratorEnergyMeter(
      const std::string& library = "libnvidia-ml.so.1");
  ~AcceleratorEnergyMeter();
  AcceleratorEnergyMeter(const AcceleratorEnergyMeter&) = delete;
  AcceleratorEnergyMeter& operator=(const AcceleratorEnergyMeter&) = delete;

  /// Joules since construction. None if there is no device, one of them does
  /// not report (those before Volta have no counter), or its counter fell.
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
