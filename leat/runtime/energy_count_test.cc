#include "leat/runtime/energy_count.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

namespace leat {
namespace {

class EnergyCountTest : public ::testing::Test {
 protected:
  EnergyCountTest() {
    std::filesystem::create_directories(package());
    ::setenv("FAKE_NVML", devices().c_str(), 1);
  }
  ~EnergyCountTest() override {
    std::filesystem::remove_all(root_);
    ::unsetenv("FAKE_NVML");
  }

  std::filesystem::path package() const { return root_ / "intel-rapl:0"; }
  std::filesystem::path devices() const { return root_ / "devices"; }
  void set_processor(std::uint64_t microjoules) const {
    std::ofstream(package() / "energy_uj") << microjoules;
  }
  void set_device(std::uint64_t millijoules) const {
    std::ofstream(devices()) << millijoules << "\n";
  }

  const std::filesystem::path root_ =
      std::filesystem::path(::testing::TempDir()) /
      ::testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(EnergyCountTest, CountsBothFromItsBeginning) {
  set_processor(5'000'000);
  set_device(9'000);
  EnergyCount count(LEAT_FAKE_NVML, root_);
  while (!count.now().accelerators) std::this_thread::yield();

  set_processor(7'000'000);
  set_device(12'000);

  EXPECT_EQ(count.now().processors, 2);
  EXPECT_EQ(count.now().accelerators, 3);
}

TEST_F(EnergyCountTest, TellsNothingWhereNothingCanBeRead) {
  EnergyCount count("libno-such-library.so", root_ / "none");

  EXPECT_FALSE(count.now().processors);
  EXPECT_FALSE(count.now().accelerators);
}

TEST_F(EnergyCountTest, ACounterThatBeginsAnewIsSeenWhereItIsKept) {
  std::ofstream(package() / "max_energy_range_uj") << 10'000'000;
  set_processor(9'000'000);
  EnergyCount count("libno-such-library.so", root_);
  const TimePoint begin = SteadyClock().now();

  // Twice around: by 6 J, and by 10.
  set_processor(5'000'000);
  count.keep(begin);
  set_processor(4'000'000);
  count.keep(begin + std::chrono::seconds(59));
  set_processor(5'000'000 - 1);
  count.keep(begin + std::chrono::seconds(60));

  EXPECT_NEAR(count.now().processors.value_or(0), 16, 1e-3);
}

}  // namespace
}  // namespace leat
