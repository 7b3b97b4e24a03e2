#include "leat/runtime/energy.h"

#include <fstream>
#include <system_error>
#include <utility>

namespace leat {
namespace {

std::optional<std::uint64_t> number_in(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::uint64_t number = 0;
  if (file >> number) return number;
  return std::nullopt;
}

/// "intel-rapl:0", but not "intel-rapl:0:1", a part of it.
bool is_package(const std::string& name) {
  const std::size_t colon = name.find(':');
  return name.starts_with("intel-rapl:") &&
         name.find(':', colon + 1) == std::string::npos;
}

}  // namespace

EnergyMeter::EnergyMeter(std::filesystem::path root)
    : root_(std::move(root)), last_(read()) {}

std::map<std::string, std::uint64_t> EnergyMeter::read() const {
  std::map<std::string, std::uint64_t> counters;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(root_, failed)) {
    const std::string name = entry.path().filename().string();
    if (!is_package(name)) continue;
    const auto counter = number_in(entry.path() / "energy_uj");
    if (!counter) return {};
    counters[name] = *counter;
  }
  return counters;
}

std::optional<double> EnergyMeter::joules() {
  auto now = read();
  if (now.empty() || now.size() != last_.size()) return std::nullopt;
  for (const auto& [name, counter] : now) {
    const auto before = last_.find(name);
    if (before == last_.end()) return std::nullopt;
    std::uint64_t range = 0;
    if (counter < before->second) {
      const auto most = number_in(root_ / name / "max_energy_range_uj");
      if (!most) return std::nullopt;
      range = *most;
    }
    joules_ += static_cast<double>(counter + range - before->second) / 1e6;
  }
  last_ = std::move(now);
  return joules_;
}

}  // namespace leat
