// The load on the node's cores from our processes and from others, and the
// cores that are left.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "leat/tune/allocation.h"

namespace leat {

struct CpuLoad {
  double cores = 0;         ///< The machine's cores; 0: unknown.
  double busy = 0;          ///< Cores in use by all processes.
  double busy_outside = 0;  ///< The part used by processes outside.
};

/// Reads /proc/stat and /proc/PID/stat, for the whole machine even in a
/// container. Each result covers the time since the one before. Files that
/// cannot be read count as idle.
class CpuLoadMeter {
 public:
  explicit CpuLoadMeter(std::string root = "/") : root_(std::move(root)) {}

  /// `ours`: the processes that do not count as outside, nor do their children
  /// and the children of these, such as workers. A process counts from the
  /// second time on that it is met. If `ours` is empty, no process is read.
  CpuLoad measure(const std::vector<std::int32_t>& ours, double seconds);

 private:
  struct Machine {
    double cores = 0;
    double busy_ticks = -1;  ///< Since it began; below 0: unknown.
  };
  struct Process {
    std::int32_t parent = 0;
    double ticks = 0;  ///< Since it began.
  };
  Machine machine() const;
  std::map<std::int32_t, Process> processes() const;
  std::optional<Process> process_of(const std::string& pid) const;
  /// The ticks of `ours` and of all that descend from them.
  std::map<std::int32_t, double> ticks_of_families(
      const std::vector<std::int32_t>& ours) const;

  const std::string root_;
  double busy_ = -1;
  std::map<std::int32_t, double> ours_;
};

/// `node` with no more threads than limits allow, rounded down, and than the
/// machine has cores that other programs leave free, rounded to the nearest; at
/// least one. Programs on cores that the limits deny us do not count.
NodeResources with_cores(NodeResources node, double allowed,
                         const CpuLoad& load);

}  // namespace leat
