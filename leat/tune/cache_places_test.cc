#include "leat/tune/cache_places.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <random>
#include <vector>

namespace leat {
namespace {

NodeResources node_of(double ram, double disk) {
  return {.threads = 1, .cache_bytes = ram + disk, .disk_bytes = disk};
}

TEST(CachePlacesTest, WhatEitherTierHoldsGoesToRamInProportion) {
  std::vector<Grant> grants = {{.cache_bytes = 60}, {.cache_bytes = 20}};
  const std::vector<CacheRoom> rooms(2);

  place_cache(node_of(40, 40), rooms, grants);

  EXPECT_DOUBLE_EQ(grants[0].ram_bytes(), 30);
  EXPECT_DOUBLE_EQ(grants[0].disk_bytes, 30);
  EXPECT_DOUBLE_EQ(grants[1].ram_bytes(), 10);
  EXPECT_DOUBLE_EQ(grants[1].disk_bytes, 10);
}

TEST(CachePlacesTest, AJobWithOneTierGetsThatFirst) {
  std::vector<Grant> grants = {{.cache_bytes = 40}, {.cache_bytes = 40}};
  const std::vector<CacheRoom> rooms = {{.disk_bytes = 0}, {}};

  place_cache(node_of(40, 40), rooms, grants);

  EXPECT_DOUBLE_EQ(grants[0].ram_bytes(), 40);
  EXPECT_DOUBLE_EQ(grants[0].disk_bytes, 0);
  EXPECT_DOUBLE_EQ(grants[1].ram_bytes(), 0);
  EXPECT_DOUBLE_EQ(grants[1].disk_bytes, 40);
}

TEST(CachePlacesTest, WhatNoTierHasRoomForIsNotGiven) {
  std::vector<Grant> grants = {{.cache_bytes = 50}, {.cache_bytes = 30}};
  const std::vector<CacheRoom> rooms = {{.disk_bytes = 0}, {.disk_bytes = 0}};

  place_cache(node_of(40, 40), rooms, grants);

  EXPECT_DOUBLE_EQ(grants[0].cache_bytes, 25);
  EXPECT_DOUBLE_EQ(grants[1].cache_bytes, 15);
}

RC_GTEST_PROP(CachePlacesProperty, SumsKeepWithinTheNodeAndEachWithinItsRoom,
              (std::uint64_t seed)) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> part(0, 1);
  const NodeResources node = node_of(100 * part(random), 100 * part(random));
  std::vector<Grant> grants(1 + random() % 6);
  std::vector<CacheRoom> rooms(grants.size());
  std::vector<double> asked;
  double left = node.cache_bytes;
  for (std::size_t i = 0; i < grants.size(); ++i) {
    if (random() % 3 == 0) rooms[i].ram_bytes = 80 * part(random);
    if (random() % 3 == 0) rooms[i].disk_bytes = 80 * part(random);
    grants[i].cache_bytes = left * part(random);
    left -= grants[i].cache_bytes;
    asked.push_back(grants[i].cache_bytes);
  }

  place_cache(node, rooms, grants);

  double ram = 0;
  double disk = 0;
  for (std::size_t i = 0; i < grants.size(); ++i) {
    RC_ASSERT(grants[i].ram_bytes() >= -1e-9);
    RC_ASSERT(grants[i].ram_bytes() <= rooms[i].ram_bytes + 1e-9);
    RC_ASSERT(grants[i].disk_bytes <= rooms[i].disk_bytes + 1e-9);
    RC_ASSERT(grants[i].cache_bytes <= asked[i] + 1e-9);
    ram += grants[i].ram_bytes();
    disk += grants[i].disk_bytes;
  }
  RC_ASSERT(ram <= node.cache_bytes - node.disk_bytes + 1e-9);
  RC_ASSERT(disk <= node.disk_bytes + 1e-9);
}

}  // namespace
}  // namespace leat
