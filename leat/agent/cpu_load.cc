#include "leat/agent/cpu_load.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <string>

namespace leat {

CpuLoadMeter::Machine CpuLoadMeter::machine() const {
  std::ifstream file(root_ + "proc/stat");
  Machine found;
  std::string line;
  // "cpu", the sum, and then a line for each core that is on.
  while (std::getline(file, line) && line.starts_with("cpu")) {
    if (line[3] != ' ') {
      ++found.cores;
      continue;
    }
    std::istringstream fields(line.substr(3));
    double user = 0;
    double nice = 0;
    double system = 0;
    if (fields >> user >> nice >> system) {
      found.busy_ticks = user + nice + system;
    }
  }
  return found;
}

double CpuLoadMeter::ticks_of(std::int32_t pid) const {
  std::ifstream file(root_ + "proc/" + std::to_string(pid) + "/stat");
  std::string line;
  if (!std::getline(file, line)) return 0;
  // Behind the name, which may hold anything: state is the first field.
  const std::size_t end = line.rfind(')');
  if (end == std::string::npos) return 0;
  std::istringstream fields(line.substr(end + 1));
  std::string skipped;
  for (int i = 0; i < 11; ++i) fields >> skipped;
  double user = 0;
  double system = 0;
  fields >> user >> system;
  return fields ? user + system : 0;
}

CpuLoad CpuLoadMeter::measure(const std::vector<std::int32_t>& ours,
                              double seconds) {
  const Machine all = machine();
  const double busy = all.busy_ticks;
  double by_ours = 0;
  std::map<std::int32_t, double> now;
  for (const std::int32_t pid : ours) {
    now[pid] = ticks_of(pid);
    const auto before = ours_.find(pid);
    if (before != ours_.end()) {
      by_ours += std::max(0.0, now[pid] - before->second);
    }
  }
  CpuLoad load{.cores = all.cores};
  const double tick = 1.0 / static_cast<double>(::sysconf(_SC_CLK_TCK));
  if (busy >= 0 && busy_ >= 0 && seconds > 0) {
    load.busy = std::max(0.0, busy - busy_) * tick / seconds;
    load.busy_outside = std::max(0.0, load.busy - by_ours * tick / seconds);
  }
  busy_ = busy;
  ours_ = std::move(now);
  return load;
}

NodeResources with_cores(NodeResources node, double allowed,
                         const CpuLoad& load) {
  if (load.cores > 0) {
    allowed = std::min(allowed, load.cores - load.busy_outside);
  }
  node.threads =
      std::max(1.0, std::floor(std::min(node.threads, allowed) + 0.5));
  return node;
}

}  // namespace leat
