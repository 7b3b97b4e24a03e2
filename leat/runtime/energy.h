// The energy of this machine's processors, if the kernel reports it.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace leat {

/// Reads RAPL's counters of processor packages (Linux: Documentation/power/
/// powercap). They cover the whole machine, for all programs, and are mostly
/// readable by root alone; accelerators are not included.
///
/// Threads: one at a time.
class EnergyMeter {
 public:
  /// Begins to count. Tests pass another `root`.
  explicit EnergyMeter(std::filesystem::path root = "/sys/class/powercap");

  /// Joules since construction. None if there is no counter, or one cannot be
  /// read. A counter that wrapped around once is handled: call it at least
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
