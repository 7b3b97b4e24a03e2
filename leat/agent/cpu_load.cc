#include "leat/agent/cpu_load.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

namespace leat {
namespace {

template <class Number>
std::optional<Number> whole_number(std::string_view text) {
  Number number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || rest != end) return std::nullopt;
  return number;
}

}  // namespace

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

std::map<std::int32_t, CpuLoadMeter::Process> CpuLoadMeter::processes() const {
  std::map<std::int32_t, Process> found;
  std::error_code failed;
  std::filesystem::directory_iterator entry(root_ + "proc", failed);
  for (; entry != std::filesystem::directory_iterator();
       entry.increment(failed)) {
    const std::string name = entry->path().filename().string();
    const auto pid = whole_number<std::int32_t>(name);
    if (!pid) continue;
    if (const auto process = process_of(name)) found.emplace(*pid, *process);
  }
  return found;
}

std::optional<CpuLoadMeter::Process> CpuLoadMeter::process_of(
    const std::string& pid) const {
  std::ifstream file(root_ + "proc/" + pid + "/stat");
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  // Behind the name, which may hold anything: the state, the parent, nine
  // more, and the ticks in user and system mode.
  const std::size_t end = line.rfind(')');
  if (end == std::string::npos) return std::nullopt;
  std::string_view rest = std::string_view(line).substr(end + 1);
  std::array<std::string_view, 13> fields;
  for (std::string_view& field : fields) {
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    field = rest.substr(0, rest.find(' '));
    rest.remove_prefix(field.size());
  }
  const auto parent = whole_number<std::int32_t>(fields[1]);
  const auto user = whole_number<std::uint64_t>(fields[11]);
  const auto system = whole_number<std::uint64_t>(fields[12]);
  if (!parent || !user || !system) return std::nullopt;
  return Process{.parent = *parent,
                 .ticks = static_cast<double>(*user + *system)};
}

std::map<std::int32_t, double> CpuLoadMeter::ticks_of_families(
    const std::vector<std::int32_t>& ours) const {
  std::map<std::int32_t, double> ticks;
  if (ours.empty()) return ticks;
  const std::map<std::int32_t, Process> all = processes();
  std::multimap<std::int32_t, std::int32_t> children;
  for (const auto& [pid, process] : all) children.emplace(process.parent, pid);
  std::vector<std::int32_t> family = ours;
  while (!family.empty()) {
    const std::int32_t pid = family.back();
    family.pop_back();
    const auto found = all.find(pid);
    // Each once, even if numbers were given anew while they were read, and the
    // parents go in a circle.
    if (found == all.end() || !ticks.emplace(pid, found->second.ticks).second) {
      continue;
    }
    const auto [begin, end] = children.equal_range(pid);
    for (auto child = begin; child != end; ++child) {
      family.push_back(child->second);
    }
  }
  return ticks;
}

CpuLoad CpuLoadMeter::measure(const std::vector<std::int32_t>& ours,
                              double seconds) {
  const Machine all = machine();
  const double busy = all.busy_ticks;
  double by_ours = 0;
  std::map<std::int32_t, double> now = ticks_of_families(ours);
  for (const auto& [pid, ticks] : now) {
    const auto before = ours_.find(pid);
    if (before != ours_.end()) {
      by_ours += std::max(0.0, ticks - before->second);
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
  node.threads = std::floor(std::min(node.threads, allowed));
  if (load.cores > 0) {
    // The others' load is measured: what they leave is known to half a core.
    const double left = std::floor(load.cores - load.busy_outside + 0.5);
    node.threads = std::min(node.threads, left);
  }
  node.threads = std::max(1.0, node.threads);
  return node;
}

}  // namespace leat
