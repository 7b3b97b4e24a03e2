// Energy that the accelerators of this machine used, where NVML tells.
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace leat {

/// Reads the counters of all of NVIDIA's devices that this process sees,
/// through the driver's own library, which is looked for when the program runs:
/// no build needs it. They are of the whole device, whoever used it.
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

  /// Joules since the driver was loaded, of all devices.
  std::optional<std::vector<double>> read() const;

  void* handle_ = nullptr;
  int (*shutdown_)() = nullptr;
  int (*energy_)(Device, unsigned long long*) = nullptr;
  std::vector<Device> devices_;
  std::optional<std::vector<double>> first_;
};

}  // namespace leat
