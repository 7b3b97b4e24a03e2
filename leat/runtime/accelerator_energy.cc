// The functions are those of NVML's reference: nvmlInit_v2,
// nvmlDeviceGetCount_v2, nvmlDeviceGetHandleByIndex_v2 and
// nvmlDeviceGetTotalEnergyConsumption (millijoules since the driver was
// loaded); each returns 0 for success.

#include "leat/runtime/accelerator_energy.h"

#include <dlfcn.h>

namespace leat {
namespace {

constexpr int kSuccess = 0;

template <class Function>
Function* function_in(void* library, const char* name) {
  return reinterpret_cast<Function*>(::dlsym(library, name));
}

}  // namespace

AcceleratorEnergyMeter::AcceleratorEnergyMeter(const std::string& library)
    : handle_(::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL)) {
  if (handle_ == nullptr) return;
  const auto init = function_in<int()>(handle_, "nvmlInit_v2");
  const auto count =
      function_in<int(unsigned*)>(handle_, "nvmlDeviceGetCount_v2");
  const auto device = function_in<int(unsigned, Device*)>(
      handle_, "nvmlDeviceGetHandleByIndex_v2");
  energy_ = function_in<int(Device, unsigned long long*)>(
      handle_, "nvmlDeviceGetTotalEnergyConsumption");
  const auto shutdown = function_in<int()>(handle_, "nvmlShutdown");
  if (init == nullptr || count == nullptr || device == nullptr ||
      energy_ == nullptr || shutdown == nullptr || init() != kSuccess) {
    return;
  }
  shutdown_ = shutdown;
  unsigned devices = 0;
  if (count(&devices) != kSuccess) return;
  for (unsigned i = 0; i < devices; ++i) {
    Device found = nullptr;
    if (device(i, &found) != kSuccess) return;
    devices_.push_back(found);
  }
  first_ = read();
}

AcceleratorEnergyMeter::~AcceleratorEnergyMeter() {
  if (shutdown_ != nullptr) (void)shutdown_();
  if (handle_ != nullptr) ::dlclose(handle_);
}

std::optional<std::vector<double>> AcceleratorEnergyMeter::read() const {
  std::vector<double> joules;
  joules.reserve(devices_.size());
  for (const Device device : devices_) {
    unsigned long long millijoules = 0;
    if (energy_(device, &millijoules) != kSuccess) return std::nullopt;
    joules.push_back(static_cast<double>(millijoules) / 1e3);
  }
  return joules;
}

std::optional<double> AcceleratorEnergyMeter::joules() const {
  if (!first_ || first_->empty()) return std::nullopt;
  const std::optional<std::vector<double>> now = read();
  if (!now) return std::nullopt;
  double used = 0;
  for (std::size_t i = 0; i < now->size(); ++i) {
    if ((*now)[i] < (*first_)[i]) return std::nullopt;
    used += (*now)[i] - (*first_)[i];
  }
  return used;
}

}  // namespace leat
