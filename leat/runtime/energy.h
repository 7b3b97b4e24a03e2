// The energy of this machine's processors, if the kernel tells it.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace leat {

/// Reads RAPL's counters of processor packages (Linux: Documentation/power/
/// powercap). They are of the whole machine, for all programs, and mostly
/// readable by root alone; accelerators are not in them.
///
/// Threads: one at a time.
class EnergyMeter {
 public:
  /// Begins to count. `root` is another in tests.
  explicit EnergyMeter(std::filesystem::path root = "/sys/class/powercap");

  /// Joules since it began. None where a counter cannot be read, or there is
  /// none. A counter that has begun anew is counted on, once: call it at least
  /// every few minutes.
  std::optional<double> joules();

 private:
  /// Microjoules of each package.
  std::map<std::string, std::uint64_t> read() const;

  const std::filesystem::path root_;
  std::map<std::string, std::uint64_t> last_;
  double joules_ = 0;
};

}  // namespace leat
