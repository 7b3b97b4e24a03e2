#include "leat/runtime/heap.h"

#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace leat {
namespace {

/// In kB; 0: unknown.
long anonymous_memory() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("RssAnon:")) return std::stol(line.substr(8));
  }
  return 0;
}

TEST(HeapTrimTest, GivesBackWhatLiesBetweenBytesInUse) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || \
    !defined(__GLIBC__)
  GTEST_SKIP() << "another heap than glibc's";
#else
  constexpr std::size_t kBytes = 20'000;
  std::vector<std::unique_ptr<char[]>> blocks;
  // A thread's heap, whose end stays in use.
  std::thread([&] {
    for (int i = 0; i < 3000; ++i) {
      blocks.push_back(std::make_unique<char[]>(kBytes));
    }
  }).join();
  blocks.erase(blocks.begin(), blocks.end() - 1);
  const long before = anonymous_memory();
  ASSERT_GT(before, 50'000);
  HeapTrim trim;

  EXPECT_TRUE(trim.trim(TimePoint(std::chrono::hours(1))));

  EXPECT_LT(anonymous_memory(), before - 40'000);
#endif
}

TEST(HeapTrimTest, RestsInBetween) {
#ifdef __GLIBC__
  HeapTrim trim;
  const TimePoint began(std::chrono::hours(1));

  EXPECT_TRUE(trim.trim(began));
  EXPECT_FALSE(trim.trim(began + HeapTrim::kBetween - Nanoseconds(1)));
  EXPECT_TRUE(trim.trim(began + HeapTrim::kBetween));
#endif
}

}  // namespace
}  // namespace leat
