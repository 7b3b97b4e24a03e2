#include "leat/agent/cpu_load.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace leat {
namespace {

class CpuLoadTest : public ::testing::Test {
 protected:
  static constexpr int kJob = 7;

  /// Seconds of CPU since the machine began: those of everything, and those of
  /// the job.
  void has_used(double all, double by_job) {
    const auto hz = static_cast<double>(::sysconf(_SC_CLK_TCK));
    write("proc/stat", "cpu  " + std::to_string(long(all * hz)) +
                           " 0 0 900 0 0 0 0 0 0\ncpu0 1 0 0 9\ncpu1 1 0 0 9\n"
                           "cpu3 1 0 0 9\nintr 12\n");
    process_has_used(kJob, 1, by_job);
  }
  void process_has_used(int pid, int parent, double seconds) {
    const auto hz = static_cast<double>(::sysconf(_SC_CLK_TCK));
    write("proc/" + std::to_string(pid) + "/stat",
          std::to_string(pid) + " (a) b) S " + std::to_string(parent) +
              " 2 3 4 5 6 7 8 9 10 " + std::to_string(long(seconds * hz)) +
              " 0 0 0\n");
  }
  void write(const std::string& name, const std::string& text) {
    const std::filesystem::path path = std::filesystem::path(root_) / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  CpuLoadMeter meter() const { return CpuLoadMeter(root_ + "/"); }

  ~CpuLoadTest() override { std::filesystem::remove_all(root_); }

 private:
  std::string root_ =
      ::mkdtemp((::testing::TempDir() + "leat-load-XXXXXX").data());
};

TEST_F(CpuLoadTest, WhatIsNotOfTheJobsIsOutside) {
  CpuLoadMeter load = meter();
  has_used(100, 10);
  EXPECT_EQ(load.measure({kJob}, 1).busy, 0) << "of no time";

  has_used(105, 11);
  const CpuLoad now = load.measure({kJob}, 2);

  EXPECT_DOUBLE_EQ(now.cores, 3);
  EXPECT_DOUBLE_EQ(now.busy, 2.5);
  EXPECT_DOUBLE_EQ(now.busy_outside, 2);
}

TEST_F(CpuLoadTest, WhoHasJustComeIsOutsideUntilThen) {
  CpuLoadMeter load = meter();
  has_used(100, 10);
  load.measure({}, 1);

  has_used(101, 11);
  EXPECT_DOUBLE_EQ(load.measure({kJob}, 1).busy_outside, 1);
  has_used(102, 12);
  EXPECT_DOUBLE_EQ(load.measure({kJob}, 1).busy_outside, 0);
}

TEST_F(CpuLoadTest, WorkersOfAJobAreOfIt) {
  CpuLoadMeter load = meter();
  // A server that forks, its worker, and a program of somebody else.
  const auto have_used = [&](double by_server, double by_worker,
                             double by_other) {
    has_used(by_server + by_worker + by_other, 0);
    process_has_used(8, kJob, by_server);
    process_has_used(9, 8, by_worker);
    process_has_used(10, 1, by_other);
  };
  have_used(1, 1, 1);
  load.measure({kJob}, 1);

  have_used(2, 1, 1);
  EXPECT_DOUBLE_EQ(load.measure({kJob}, 1).busy_outside, 0) << "a child";
  have_used(2, 2, 1);
  EXPECT_DOUBLE_EQ(load.measure({kJob}, 1).busy_outside, 0) << "its child";
  have_used(2, 2, 2);
  EXPECT_DOUBLE_EQ(load.measure({kJob}, 1).busy_outside, 1);
}

TEST_F(CpuLoadTest, ParentsThatGoInACircleAreCountedOnce) {
  CpuLoadMeter load = meter();
  has_used(100, 10);
  process_has_used(kJob, 8, 10);
  process_has_used(8, kJob, 10);
  load.measure({kJob}, 1);

  has_used(102, 11);
  process_has_used(kJob, 8, 11);
  process_has_used(8, kJob, 10.5);
  EXPECT_DOUBLE_EQ(load.measure({kJob}, 1).busy_outside, 0.5);
}

TEST_F(CpuLoadTest, AProcessThatCannotBeSeenHasNoChildren) {
  CpuLoadMeter load = meter();
  has_used(100, 10);
  process_has_used(1, 0, 10);
  load.measure({0}, 1);

  has_used(101, 10);
  process_has_used(1, 0, 11);
  EXPECT_DOUBLE_EQ(load.measure({0}, 1).busy_outside, 1)
      << "0 is the parent of the first process, and of jobs that another "
         "container hides";
}

TEST(NodeCoresTest, OthersTakeOnlyWhatLimitsDoNotKeepFromUs) {
  const auto threads = [](double given, double allowed, double cores,
                          double outside) {
    const CpuLoad load{.cores = cores, .busy = 0, .busy_outside = outside};
    return with_cores({.threads = given}, allowed, load).threads;
  };
  EXPECT_EQ(threads(kUnbounded, 64, 64, 0), 64);
  EXPECT_EQ(threads(kUnbounded, 64, 64, 20.2), 44);
  EXPECT_EQ(threads(kUnbounded, 4, 64, 20), 4) << "a container of 4";
  EXPECT_EQ(threads(8, 64, 64, 20), 8) << "asked for 8";
  EXPECT_EQ(threads(8, 64, 64, 60.6), 3);
  EXPECT_EQ(threads(kUnbounded, 1.5, 64, 0), 1) << "2 would be throttled";
  EXPECT_EQ(threads(kUnbounded, 3.9, 64, 0), 3);
  EXPECT_EQ(threads(2.7, 64, 64, 0), 2);
  EXPECT_EQ(threads(kUnbounded, 0.5, 64, 0), 1) << "there is no less";
  EXPECT_EQ(threads(kUnbounded, 64, 64, 0.4), 64) << "noise takes no core";
  EXPECT_EQ(threads(kUnbounded, 2, 2, 7), 1) << "more than there are";
  EXPECT_EQ(threads(kUnbounded, 2, 0, 0), 2) << "no /proc";
}

TEST_F(CpuLoadTest, WhatCannotBeReadIsIdle) {
  CpuLoadMeter load = meter();
  const CpuLoad now = load.measure({kJob}, 1);
  EXPECT_EQ(now.cores, 0);
  EXPECT_EQ(now.busy, 0);
  EXPECT_EQ(now.busy_outside, 0);
}

}  // namespace
}  // namespace leat
