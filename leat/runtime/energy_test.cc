#include "leat/runtime/energy.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace leat {
namespace {

class EnergyTest : public ::testing::Test {
 protected:
  EnergyTest() { std::filesystem::remove_all(root_); }
  ~EnergyTest() override { std::filesystem::remove_all(root_); }

  void set(const std::string& domain, std::uint64_t microjoules) const {
    std::filesystem::create_directories(root_ / domain);
    std::ofstream(root_ / domain / "energy_uj") << microjoules;
    std::ofstream(root_ / domain / "max_energy_range_uj") << 10'000'000;
  }

  const std::filesystem::path root_ =
      std::filesystem::path(::testing::TempDir()) /
      ::testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(EnergyTest, PackagesAreAddedAndTheirPartsAreNot) {
  set("intel-rapl:0", 1'000'000);
  set("intel-rapl:0:0", 0);
  set("intel-rapl:1", 0);
  EnergyMeter meter(root_);

  set("intel-rapl:0", 3'000'000);
  set("intel-rapl:0:0", 1'500'000);
  set("intel-rapl:1", 500'000);

  EXPECT_EQ(meter.joules(), 2.5);
}

TEST_F(EnergyTest, ThePlatformIsNotAddedToItsPackages) {
  const auto name = [&](const std::string& domain, const std::string& text) {
    std::filesystem::create_directories(root_ / domain);
    std::ofstream(root_ / domain / "name") << text << '\n';
  };
  name("intel-rapl:0", "package-0");
  name("intel-rapl:1", "package-1-die-0");
  name("intel-rapl:2", "psys");
  for (const char* zone : {"intel-rapl:0", "intel-rapl:1", "intel-rapl:2"}) {
    set(zone, 0);
  }
  EnergyMeter meter(root_);

  set("intel-rapl:0", 1'000'000);
  set("intel-rapl:1", 2'000'000);
  set("intel-rapl:2", 9'000'000);

  EXPECT_EQ(meter.joules(), 3);
}

TEST_F(EnergyTest, ACounterThatBeganAnewIsCountedOn) {
  set("intel-rapl:0", 9'000'000);
  EnergyMeter meter(root_);
  set("intel-rapl:0", 2'000'000);

  EXPECT_EQ(meter.joules(), 3);
  set("intel-rapl:0", 4'000'000);
  EXPECT_EQ(meter.joules(), 5);
}

TEST_F(EnergyTest, WithoutCountersNothingIsSaid) {
  EnergyMeter none(root_);
  set("intel-rapl:0", 1);
  EnergyMeter lost(root_);
  std::filesystem::remove(root_ / "intel-rapl:0" / "energy_uj");

  EXPECT_FALSE(none.joules());
  EXPECT_FALSE(lost.joules());
}

}  // namespace
}  // namespace leat
