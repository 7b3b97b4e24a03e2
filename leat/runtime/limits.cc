// A process is in one cgroup of each hierarchy: the unified one (v2) and, on
// older systems, one for each controller (v1). /proc/self/cgroup names it,
// /proc/self/mountinfo says where the hierarchy is mounted and which part of it
// is: in a container often the process's own cgroup, though its name is still
// written from the top. A limit may sit on any cgroup above, so each is asked.

#include "leat/runtime/limits.h"

#include <fmt/core.h>
#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string_view>
#include <thread>
#include <vector>

#include "leat/base/check.h"
#include "leat/base/text.h"

namespace leat {
namespace {

namespace fs = std::filesystem;

/// A hierarchy of cgroups and this process's place in it.
struct Hierarchy {
  fs::path mount;           // The mount point, relative to the root.
  fs::path group;           // This process's cgroup, relative to `mount`.
  bool is_unified = false;  // v2
};

std::vector<std::string> lines_of(const fs::path& path) {
  std::vector<std::string> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream{std::string(text)};
  for (std::string part; std::getline(stream, part, separator);) {
    parts.push_back(part);
  }
  return parts;
}

/// The words of a one-line file; none if it cannot be read.
std::vector<std::string> words_of(const fs::path& path) {
  const std::vector<std::string> lines = lines_of(path);
  return lines.empty() ? std::vector<std::string>{} : split(lines.front(), ' ');
}

bool names_controller(std::string_view list, std::string_view controller) {
  for (const std::string& name : split(list, ',')) {
    if (name == controller) return true;
  }
  return false;
}

/// `group`, which is written from the top, as seen in a mount of `mounted`.
fs::path within_mount(const std::string& group, const std::string& mounted) {
  if (mounted == "/") return fs::path(group).relative_path();
  if (group == mounted) return {};
  if (group.starts_with(mounted + "/")) return group.substr(mounted.size() + 1);
  return {};  // Outside of the mount: only its top is visible.
}

/// The group of this process in the hierarchy of `controller`, or of v2 if that
/// is empty; nullopt if it is in none.
std::optional<std::string> group_of(const std::vector<std::string>& cgroups,
                                    std::string_view controller) {
  for (const std::string& line : cgroups) {  // "4:cpu,cpuacct:/job"
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string_view list =
        std::string_view(line).substr(first + 1, second - first - 1);
    if (controller.empty() ? list.empty()
                           : names_controller(list, controller)) {
      return line.substr(second + 1);
    }
  }
  return std::nullopt;
}

/// Every mounted hierarchy that can limit CPUs or memory.
std::vector<Hierarchy> find_hierarchies(const fs::path& root) {
  const auto cgroups = lines_of(root / "proc/self/cgroup");
  std::vector<Hierarchy> found;
  for (const std::string& line : lines_of(root / "proc/self/mountinfo")) {
    // "30 23 0:26 /mounted /mount/point rw - cgroup cgroup rw,cpu,cpuacct"
    const std::size_t dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    const auto left = split(std::string_view(line).substr(0, dash), ' ');
    const auto right = split(std::string_view(line).substr(dash + 3), ' ');
    if (left.size() < 5 || right.size() < 3) continue;
    const bool is_unified = right[0] == "cgroup2";
    if (!is_unified && right[0] != "cgroup") continue;

    for (const char* controller : {"cpu", "memory"}) {
      if (!is_unified && !names_controller(right[2], controller)) continue;
      const auto group = group_of(cgroups, is_unified ? "" : controller);
      if (!group.has_value()) continue;
      found.push_back({.mount = root / fs::path(left[4]).relative_path(),
                       .group = within_mount(*group, left[3]),
                       .is_unified = is_unified});
      if (is_unified) break;
    }
  }
  return found;
}

/// Calls `visit` with the folder of the group and of each above it.
void for_each_group(const Hierarchy& hierarchy,
                    const std::function<void(const fs::path&)>& visit) {
  fs::path group = hierarchy.group;
  while (true) {
    visit(hierarchy.mount / group);
    if (group.empty()) return;
    group = group.parent_path();
  }
}

std::optional<double> cpu_quota(const fs::path& folder, bool is_unified) {
  std::vector<std::string> words;
  if (is_unified) {
    words = words_of(folder / "cpu.max");  // "150000 100000" or "max 100000"
  } else {
    words = words_of(folder / "cpu.cfs_quota_us");  // "-1" for none
    const auto period = words_of(folder / "cpu.cfs_period_us");
    words.insert(words.end(), period.begin(), period.end());
  }
  if (words.size() != 2) return std::nullopt;
  const auto quota = number_from<std::uint64_t>(words[0]);
  const auto period = number_from<std::uint64_t>(words[1]);
  if (!quota || !period || *quota == 0 || *period == 0) return std::nullopt;
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

std::optional<std::uint64_t> memory_limit(const fs::path& folder,
                                          bool is_unified) {
  const auto words =
      words_of(folder / (is_unified ? "memory.max" : "memory.limit_in_bytes"));
  return words.size() == 1 ? number_from<std::uint64_t>(words[0])
                           : std::nullopt;
}

/// "cpu.max of /job/step": the file, and its folder below the mount.
std::string origin(const Hierarchy& hierarchy, const fs::path& folder,
                   const char* unified_file, const char* v1_file) {
  const fs::path below = folder.lexically_relative(hierarchy.mount);
  return fmt::format("{} of {}", hierarchy.is_unified ? unified_file : v1_file,
                     below == "." ? "/" : "/" + below.string());
}

void apply(const Hierarchy& hierarchy, Limits& limits) {
  for_each_group(hierarchy, [&](const fs::path& folder) {
    const auto quota = cpu_quota(folder, hierarchy.is_unified);
    if (quota.has_value() && *quota < limits.cpus) {
      limits.cpus = *quota;
      limits.cpus_from =
          origin(hierarchy, folder, "cpu.max", "cpu.cfs_quota_us");
    }
    const auto memory = memory_limit(folder, hierarchy.is_unified);
    if (memory.has_value() && *memory < limits.memory_bytes) {
      limits.memory_bytes = *memory;
      limits.memory_from =
          origin(hierarchy, folder, "memory.max", "memory.limit_in_bytes");
    }
  });
}

unsigned affinity_cpus() {
  // The set must be as large as the kernel's, which may be past CPU_SETSIZE.
  for (int cpus = CPU_SETSIZE; cpus <= 1 << 20; cpus *= 2) {
    cpu_set_t* set = CPU_ALLOC(cpus);
    const std::size_t size = CPU_ALLOC_SIZE(cpus);
    const bool is_known = sched_getaffinity(0, size, set) == 0;
    const int count = is_known ? CPU_COUNT_S(size, set) : 0;
    const bool is_too_small = !is_known && errno == EINVAL;
    CPU_FREE(set);
    if (count > 0) return static_cast<unsigned>(count);
    if (!is_too_small) break;
  }
  return std::max(1u, std::thread::hardware_concurrency());
}

std::uint64_t as_limit(rlim_t limit) {
  return limit == RLIM_INFINITY ? Limits::kUnlimited : limit;
}

std::uint64_t open_file_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return Limits::kUnlimited;
  return as_limit(limit.rlim_cur);
}

std::optional<std::uint64_t> physical_memory(const fs::path& root) {
  for (const std::string& line : lines_of(root / "proc/meminfo")) {
    std::istringstream words(line);  // "MemTotal:       24633932 kB"
    std::string name;
    std::uint64_t kib = 0;
    if (words >> name >> kib && name == "MemTotal:") return kib * 1024;
  }
  return std::nullopt;
}

}  // namespace

unsigned Limits::threads() const {
  return std::max(1u, static_cast<unsigned>(cpus));
}

Limits effective_limits(const LimitSources& sources) {
  const fs::path root = sources.root;
  Limits limits;
  limits.cpus = sources.affinity_cpus.value_or(affinity_cpus());
  limits.open_files = sources.open_files.value_or(open_file_limit());
  if (const auto physical = physical_memory(root)) {
    limits.memory_bytes = *physical;
    limits.memory_from = "physical";
  }
  for (const Hierarchy& hierarchy : find_hierarchies(root)) {
    apply(hierarchy, limits);
  }
  return limits;
}

Limits share_of(const Limits& node, std::uint32_t local_ranks) {
  LEAT_CHECK(local_ranks > 0);
  Limits share = node;
  share.cpus /= local_ranks;
  if (share.memory_bytes != Limits::kUnlimited) {
    share.memory_bytes /= local_ranks;
  }
  return share;
}

Result<std::uint64_t> raise_open_files() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) == 0) return as_limit(limit.rlim_cur);
  }
  return Error(ErrorCode::kInternal,
               fmt::format("raising the limit of open files to {}: {}",
                           limit.rlim_max, std::strerror(errno)));
}

}  // namespace leat
