#include "leat/runtime/energy_count.h"

#include <dlfcn.h>

#include <chrono>
#include <utility>

#include "leat/runtime/start_thread.h"
#include "leat/runtime/thread_name.h"

namespace leat {

EnergyCount::EnergyCount(const std::string& library,
                         std::filesystem::path powercap)
    : processors_(std::move(powercap)) {
  // Without the driver there is nothing to look for, and no thread.
  void* const found = ::dlopen(library.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (found == nullptr) return;
  ::dlclose(found);
  search_ = start_thread([this, library] {
    name_this_thread("leat-nvml");
    auto meter = std::make_unique<AcceleratorEnergyMeter>(library);
    const MutexLock lock(mutex_);
    accelerators_ = std::move(meter);
  });
}

EnergyCount::Joules EnergyCount::read() {
  Joules joules{.processors = processors_.joules(), .accelerators = {}};
  if (accelerators_ != nullptr) joules.accelerators = accelerators_->joules();
  return joules;
}

EnergyCount::Joules EnergyCount::now() {
  const MutexLock lock(mutex_);
  return read();
}

void EnergyCount::keep(TimePoint at) {
  const MutexLock lock(mutex_);
  if (at - read_at_ < std::chrono::minutes(1)) return;
  read_at_ = at;
  (void)read();
}

}  // namespace leat
