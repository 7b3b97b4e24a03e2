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

/// "intel-rapl:0", but not "intel-rapl:0:1", a part of it, nor the zone "psys",
/// which is the whole platform with its packages. Names are "package-0" or, in
/// a package of several dies, "package-0-die-1".
bool is_package(const std::filesystem::path& zone) {
  const std::string folder = zone.filename().string();
  const std::size_t colon = folder.find(':');
  if (!folder.starts_with("intel-rapl:") ||
      folder.find(':', colon + 1) != std::string::npos) {
    return false;
  }
  std::ifstream file(zone / "name");
  std::string name;
  return !(file >> name) || name.starts_with("package");
}

}  // namespace

EnergyMeter::EnergyMeter(std::filesystem::path root)
    : root_(std::move(root)), last_(read()) {}

std::map<std::string, std::uint64_t> EnergyMeter::read() const {
  std::map<std::string, std::uint64_t> counters;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(root_, failed)) {
    if (!is_package(entry.path())) continue;
    const auto counter = number_in(entry.path() / "energy_uj");
    if (!counter) return {};
    counters[entry.path().filename().string()] = *counter;
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
