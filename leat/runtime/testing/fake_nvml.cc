// A libnvidia-ml.so.1 for tests: devices of which a file tells, that FAKE_NVML
// names. Each of its lines is a device: "1500" has used this many millijoules,
// "250 W" uses so much all the time, "busy 37" computes 37 % of the time,
// "error 3" answers with NVML's error 3. Its UUID is GPU- and its number.
// Without the file no driver is loaded.

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace {

constexpr int kSuccess = 0;
constexpr int kInvalidArgument = 2;
constexpr int kNotSupported = 3;
constexpr int kNotFound = 6;
constexpr int kDriverNotLoaded = 9;

struct Rates {  // Percent, as nvmlUtilization_t has them.
  unsigned gpu;
  unsigned memory;
};

std::vector<std::string> devices() {
  std::vector<std::string> lines;
  const char* const name = std::getenv("FAKE_NVML");
  if (name == nullptr) return lines;
  std::ifstream file(name);
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

double seconds_now() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

// The names and handles are NVML's.
// NOLINTBEGIN(readability-identifier-naming,performance-no-int-to-ptr)
extern "C" {

int nvmlInit_v2() { return devices().empty() ? kDriverNotLoaded : kSuccess; }

int nvmlShutdown() { return kSuccess; }

int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = static_cast<unsigned>(devices().size());
  return kSuccess;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  if (index >= devices().size()) return kInvalidArgument;
  *device = reinterpret_cast<void*>(static_cast<std::size_t>(index) + 1);
  return kSuccess;
}

int nvmlDeviceGetHandleByUUID(const char* uuid, void** device) {
  for (unsigned index = 0; index < devices().size(); ++index) {
    if ("GPU-" + std::to_string(index) == uuid) {
      return nvmlDeviceGetHandleByIndex_v2(index, device);
    }
  }
  return kNotFound;
}

int nvmlDeviceGetUtilizationRates(void* device, Rates* rates) {
  const auto index = reinterpret_cast<std::size_t>(device) - 1;
  const std::vector<std::string> all = devices();
  if (index >= all.size()) return kInvalidArgument;
  std::istringstream line(all[index]);
  std::string word;
  if (!(line >> word >> rates->gpu) || word != "busy") return kNotSupported;
  rates->memory = 0;
  return kSuccess;
}

int nvmlDeviceGetTotalEnergyConsumption(void* device,
                                        unsigned long long* millijoules) {
  const auto index = reinterpret_cast<std::size_t>(device) - 1;
  const std::vector<std::string> all = devices();
  if (index >= all.size()) return kInvalidArgument;
  std::istringstream line(all[index]);
  std::string word;
  line >> word;
  if (word == "error") {
    int error = 0;
    line >> error;
    return error;
  }
  std::string unit;
  *millijoules = std::stoull(word);
  if (line >> unit && unit == "W") {
    *millijoules = static_cast<unsigned long long>(
        1e3 * static_cast<double>(*millijoules) * seconds_now());
  }
  return kSuccess;
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming,performance-no-int-to-ptr)
