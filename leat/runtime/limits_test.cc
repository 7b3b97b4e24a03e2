#include "leat/runtime/limits.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

namespace leat {
namespace {

namespace fs = std::filesystem;
using Files = std::map<std::string, std::string>;

/// A root folder with `files` in it, gone at the end.
class FakeRoot {
 public:
  explicit FakeRoot(const Files& files)
      : path_(fs::temp_directory_path() /
              ("leat_limits_test_" + std::to_string(getpid()))) {
    fs::remove_all(path_);
    fs::create_directories(path_);
    for (const auto& [name, text] : files) {
      fs::create_directories((path_ / name).parent_path());
      std::ofstream(path_ / name) << text;
    }
  }
  ~FakeRoot() { fs::remove_all(path_); }
  FakeRoot(const FakeRoot&) = delete;
  FakeRoot& operator=(const FakeRoot&) = delete;

  std::string path() const { return path_.string(); }

 private:
  fs::path path_;
};

constexpr const char* kMemory = "MemFree: 1 kB\nMemTotal:   16777216 kB\n";
constexpr const char* kUnifiedMount =
    "24 1 8:1 / / rw - ext4 /dev/vda rw\n"
    "30 24 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n";
constexpr const char* kV1Mounts =
    "31 24 0:27 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup "
    "rw,cpu,cpuacct\n"
    "32 24 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
constexpr const char* kV1ContainerMounts =
    "31 24 0:27 /docker/c1 /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
    "32 24 0:28 /docker/c1 /sys/fs/cgroup/memory rw - cgroup cgroup "
    "rw,memory\n";
constexpr std::uint64_t kGib = 1 << 30;

struct LimitsCase {
  const char* what;
  Files files;
  double cpus;
  std::uint64_t memory_bytes;
  std::string cpus_from;
  std::string memory_from;
};

const std::vector<LimitsCase>& cases() {
  static const std::vector<LimitsCase> all = {
      {"nothing to read", {}, 8, Limits::kUnlimited, "affinity", "unknown"},
      {"no cgroups",
       {{"proc/meminfo", kMemory}},
       8,
       16 * kGib,
       "affinity",
       "physical"},
      {"v2, limits on the group itself",
       {{"proc/meminfo", kMemory},
        {"proc/self/cgroup", "0::/job\n"},
        {"proc/self/mountinfo", kUnifiedMount},
        {"sys/fs/cgroup/job/cpu.max", "150000 100000\n"},
        {"sys/fs/cgroup/job/memory.max", "536870912\n"}},
       1.5,
       kGib / 2,
       "cpu.max of /job",
       "memory.max of /job"},
      {"v2, the least of nested groups, each kind on another",
       {{"proc/meminfo", kMemory},
        {"proc/self/cgroup", "0::/a/b/c\n"},
        {"proc/self/mountinfo", kUnifiedMount},
        {"sys/fs/cgroup/a/cpu.max", "200000 100000\n"},
        {"sys/fs/cgroup/a/memory.max", "max\n"},
        {"sys/fs/cgroup/a/b/cpu.max", "max 100000\n"},
        {"sys/fs/cgroup/a/b/memory.max", "2147483648\n"},
        {"sys/fs/cgroup/a/b/c/cpu.max", "400000 100000\n"},
        {"sys/fs/cgroup/a/b/c/memory.max", "4294967296\n"}},
       2,
       2 * kGib,
       "cpu.max of /a",
       "memory.max of /a/b"},
      {"v2 in a container with a cgroup namespace",
       {{"proc/meminfo", kMemory},
        {"proc/self/cgroup", "0::/\n"},
        {"proc/self/mountinfo", kUnifiedMount},
        {"sys/fs/cgroup/cpu.max", "100000 100000\n"},
        {"sys/fs/cgroup/memory.max", "1073741824\n"}},
       1,
       kGib,
       "cpu.max of /",
       "memory.max of /"},
      {"v2 without limits, and more quota than affinity",
       {{"proc/meminfo", kMemory},
        {"proc/self/cgroup", "0::/job\n"},
        {"proc/self/mountinfo", kUnifiedMount},
        {"sys/fs/cgroup/job/cpu.max", "900000 100000\n"},
        {"sys/fs/cgroup/job/memory.max", "max\n"}},
       8,
       16 * kGib,
       "affinity",
       "physical"},
      {"v1, with the quota above the group",
       {{"proc/meminfo", kMemory},
        {"proc/self/cgroup", "4:memory:/m/n\n2:cpu,cpuacct:/c/d\n"},
        {"proc/self/mountinfo", kV1Mounts},
        {"sys/fs/cgroup/cpu,cpuacct/c/cpu.cfs_quota_us", "50000\n"},
        {"sys/fs/cgroup/cpu,cpuacct/c/cpu.cfs_period_us", "100000\n"},
        {"sys/fs/cgroup/cpu,cpuacct/c/d/cpu.cfs_quota_us", "-1\n"},
        {"sys/fs/cgroup/cpu,cpuacct/c/d/cpu.cfs_period_us", "100000\n"},
        {"sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712"},
        {"sys/fs/cgroup/memory/m/n/memory.limit_in_bytes", "1073741824\n"}},
       0.5,
       kGib,
       "cpu.cfs_quota_us of /c",
       "memory.limit_in_bytes of /m/n"},
      {"v1 in a container that still sees its name on the host",
       {{"proc/meminfo", kMemory},
        {"proc/self/cgroup", "4:memory:/docker/c1/x\n2:cpu:/docker/c1\n"},
        {"proc/self/mountinfo", kV1ContainerMounts},
        {"sys/fs/cgroup/cpu/cpu.cfs_quota_us", "300000\n"},
        {"sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"},
        {"sys/fs/cgroup/memory/x/memory.limit_in_bytes", "2147483648\n"}},
       3,
       2 * kGib,
       "cpu.cfs_quota_us of /",
       "memory.limit_in_bytes of /x"},
      {"a name outside of what is mounted",
       {{"proc/meminfo", kMemory},
        {"proc/self/cgroup", "2:cpu:/docker/c10\n"},
        {"proc/self/mountinfo", kV1ContainerMounts},
        {"sys/fs/cgroup/cpu/cpu.cfs_quota_us", "300000\n"},
        {"sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"}},
       3,
       16 * kGib,
       "cpu.cfs_quota_us of /",
       "physical"},
      {"both at once",
       {{"proc/meminfo", kMemory},
        {"proc/self/cgroup", "2:cpu,cpuacct:/c\n0::/u\n"},
        {"proc/self/mountinfo", std::string(kUnifiedMount) + kV1Mounts},
        {"sys/fs/cgroup/cpu,cpuacct/c/cpu.cfs_quota_us", "200000\n"},
        {"sys/fs/cgroup/cpu,cpuacct/c/cpu.cfs_period_us", "100000\n"},
        {"sys/fs/cgroup/u/memory.max", "1073741824\n"}},
       2,
       kGib,
       "cpu.cfs_quota_us of /c",
       "memory.max of /u"},
      {"files that hold nonsense set no limit",
       {{"proc/meminfo", "MemTotal: lots\n"},
        {"proc/self/cgroup", "nonsense\n0:\n0::/job\n"},
        {"proc/self/mountinfo", std::string("short - \n") + kUnifiedMount},
        {"sys/fs/cgroup/job/cpu.max", "0 0\n"},
        {"sys/fs/cgroup/job/memory.max", "-5\n"},
        {"sys/fs/cgroup/cpu.max", "12\n"},
        {"sys/fs/cgroup/memory.max", ""}},
       8,
       Limits::kUnlimited,
       "affinity",
       "unknown"},
  };
  return all;
}

TEST(LimitsTest, TakesTheLeastOfAllThatApply) {
  for (const LimitsCase& c : cases()) {
    SCOPED_TRACE(c.what);
    const FakeRoot root(c.files);

    const Limits limits = effective_limits(
        {.root = root.path(), .affinity_cpus = 8, .open_files = 1024});

    EXPECT_DOUBLE_EQ(limits.cpus, c.cpus);
    EXPECT_EQ(limits.memory_bytes, c.memory_bytes);
    EXPECT_EQ(limits.open_files, 1024u);
    EXPECT_EQ(limits.cpus_from, c.cpus_from);
    EXPECT_EQ(limits.memory_from, c.memory_from);
  }
}

TEST(LimitsTest, ReadsThisMachine) {
  const Limits limits = effective_limits();

  EXPECT_GT(limits.cpus, 0);
  EXPECT_GT(limits.open_files, 0u);
  EXPECT_LT(limits.memory_bytes, Limits::kUnlimited);
  EXPECT_NE(limits.memory_from, "unknown");
}

TEST(LimitsTest, AShareIsOfCpusAndMemoryButNotOfFiles) {
  const Limits node{.cpus = 6, .memory_bytes = 4 * kGib, .open_files = 100};

  const Limits share = share_of(node, 4);

  EXPECT_DOUBLE_EQ(share.cpus, 1.5);
  EXPECT_EQ(share.memory_bytes, kGib);
  EXPECT_EQ(share.open_files, 100u);
  EXPECT_EQ(share_of(Limits{}, 4).memory_bytes, Limits::kUnlimited);
}

TEST(LimitsTest, ThereIsAlwaysAThread) {
  EXPECT_EQ(Limits{.cpus = 0.2}.threads(), 1u);
  EXPECT_EQ(Limits{.cpus = 1.9}.threads(), 1u);
  EXPECT_EQ(Limits{.cpus = 4}.threads(), 4u);
}

TEST(LimitsTest, RaisesOpenFilesToTheHardLimit) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit low = before;
  low.rlim_cur = 64;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  ASSERT_EQ(effective_limits().open_files, 64u);

  const auto raised = raise_open_files();

  ASSERT_TRUE(raised) << raised.error().message();
  EXPECT_EQ(*raised, before.rlim_max);
  EXPECT_EQ(effective_limits().open_files, before.rlim_max);
  setrlimit(RLIMIT_NOFILE, &before);
}

}  // namespace
}  // namespace leat
