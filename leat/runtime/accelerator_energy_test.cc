#include "leat/runtime/accelerator_energy.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace leat {
namespace {

class AcceleratorEnergyTest : public ::testing::Test {
 protected:
  AcceleratorEnergyTest() { ::setenv("FAKE_NVML", file_.c_str(), 1); }
  ~AcceleratorEnergyTest() override {
    std::filesystem::remove(file_);
    ::unsetenv("FAKE_NVML");
  }

  /// One line a device, as testing/fake_nvml.cc reads them.
  void set(const std::string& devices) const {
    std::ofstream(file_) << devices;
  }

  const std::filesystem::path file_ =
      std::filesystem::path(::testing::TempDir()) /
      ::testing::UnitTest::GetInstance()->current_test_info()->name();
  const std::string library_ = LEAT_FAKE_NVML;
};

TEST_F(AcceleratorEnergyTest, DevicesAreAdded) {
  set("1000\n500000\n");
  const AcceleratorEnergyMeter meter(library_);
  EXPECT_EQ(meter.joules(), 0);

  set("2500\n501000\n");

  EXPECT_EQ(meter.joules(), 2.5);
  EXPECT_EQ(meter.joules(), 2.5) << "since it began, not since it was asked";
}

TEST_F(AcceleratorEnergyTest, ADeviceThatDoesNotTellLeavesTheSumOut) {
  set("1000\nerror 3\n");
  const AcceleratorEnergyMeter old(library_);
  EXPECT_FALSE(old.joules());

  set("1000\n2000\n");
  const AcceleratorEnergyMeter lost(library_);
  set("1000\nerror 15\n");
  EXPECT_FALSE(lost.joules());
  set("2000\n2000\n");
  EXPECT_EQ(lost.joules(), 1) << "and tells again";
}

TEST_F(AcceleratorEnergyTest, ACounterThatFellIsNotBelieved) {
  set("1000\n2000\n");
  const AcceleratorEnergyMeter meter(library_);

  set("9000\n1000\n");

  EXPECT_FALSE(meter.joules());
}

TEST_F(AcceleratorEnergyTest, WithoutADriverADeviceOrTheLibraryNothingIsSaid) {
  const AcceleratorEnergyMeter no_driver(library_);
  const AcceleratorEnergyMeter no_library("libleat-no-such-library.so.1");
  const AcceleratorEnergyMeter other_library("libm.so.6");

  set("1000\n");

  EXPECT_FALSE(no_driver.joules());
  EXPECT_FALSE(no_library.joules());
  EXPECT_FALSE(other_library.joules());
}

}  // namespace
}  // namespace leat
