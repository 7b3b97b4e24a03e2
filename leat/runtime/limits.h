// The CPUs, memory and open files that this process may actually use.
#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "leat/base/result.h"

namespace leat {

/// The resources that a process may use, and the source of each limit. A
/// container's limits hold: more threads than the CPU quota get the whole
/// process throttled, and more bytes than the memory limit get it killed.
struct Limits {
  static constexpr std::uint64_t kUnlimited =
      std::numeric_limits<std::uint64_t>::max();

  /// Not whole: a quota of 1.5 CPUs is common. More than 0.
  double cpus = 1;
  std::uint64_t memory_bytes = kUnlimited;
  std::uint64_t open_files = kUnlimited;

  /// The source of each limit, for logs: "affinity", "cpu.max of /job",
  /// "physical".
  std::string cpus_from = "affinity";
  std::string memory_from = "unknown";

  /// The number of threads that `cpus` can keep busy: rounded down, at least 1.
  unsigned threads() const;
};

/// The sources to read limits from: the running system unless a test says
/// otherwise.
struct LimitSources {
  /// The folder that holds /proc and /sys.
  std::string root = "/";
  /// Replace sched_getaffinity and getrlimit.
  std::optional<unsigned> affinity_cpus;
  std::optional<std::uint64_t> open_files;
};

/// The least of affinity, CPU quota and memory limit of this process's cgroups
/// and all their ancestors (v1, v2 and both together), physical memory and
/// RLIMIT_NOFILE. Reads a few files; blocks.
///
/// Never fails: a source that cannot be read sets no limit.
Limits effective_limits(const LimitSources& sources = {});

/// One of `local_ranks` equal shares of a node's resources. Open files are
/// counted for each process and stay. REQUIRES: local_ranks > 0.
Limits share_of(const Limits& node, std::uint32_t local_ranks);

/// Raises the soft limit of open files to the hard one, which needs no rights,
/// and returns it. For a program, not a library, to call: it is the process's.
///
/// Errors:
///   kInternal  the kernel refused; the message says why
Result<std::uint64_t> raise_open_files();

}  // namespace leat
