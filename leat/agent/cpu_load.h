// How busy the node's cores are, and with whom.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace leat {

struct CpuLoad {
  double busy = 0;          ///< Cores, by everything.
  double busy_outside = 0;  ///< Of these, by processes that are not ours.
};

/// Reads /proc/stat and /proc/PID/stat; each answer is of the time since the
/// one before. What cannot be read counts as idle.
class CpuLoadMeter {
 public:
  explicit CpuLoadMeter(std::string root = "/") : root_(std::move(root)) {}

  /// `ours`: processes whose time is not outside.
  CpuLoad measure(const std::vector<std::int32_t>& ours, double seconds);

 private:
  double busy_ticks() const;
  double ticks_of(std::int32_t pid) const;

  const std::string root_;
  double busy_ = -1;
  std::map<std::int32_t, double> ours_;
};

}  // namespace leat
