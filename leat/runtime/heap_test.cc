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

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || \
    !defined(__GLIBC__)
constexpr bool kIsOfGlibc = false;
#else
constexpr bool kIsOfGlibc = true;
#endif

/// 100 MB of a thread's heap, whose end stays in use.
std::vector<std::unique_ptr<char[]>> blocks_of_a_thread() {
  std::vector<std::unique_ptr<char[]>> blocks;
  std::thread([&] {
    for (int i = 0; i < 5000; ++i) {
      blocks.push_back(std::make_unique<char[]>(20'000));
    }
  }).join();
  return blocks;
}

void free_all_but_the_last(std::vector<std::unique_ptr<char[]>>& blocks) {
  blocks.erase(blocks.begin(), blocks.end() - 1);
}

constexpr TimePoint kBegan(std::chrono::hours(1));

TEST(HeapTrimTest, GivesBackWhatLiesBetweenBytesInUse) {
  if (!kIsOfGlibc) GTEST_SKIP() << "another heap than glibc's";
  auto blocks = blocks_of_a_thread();
  free_all_but_the_last(blocks);
  const long before = anonymous_memory();
  ASSERT_GT(before, 90'000);
  HeapTrim trim;

  EXPECT_TRUE(trim.trim(kBegan));

  EXPECT_LT(anonymous_memory(), before - 80'000);
}

TEST(HeapTrimTest, RestsInBetween) {
  if (!kIsOfGlibc) GTEST_SKIP() << "another heap than glibc's";
  HeapTrim trim;
  auto blocks = blocks_of_a_thread();
  free_all_but_the_last(blocks);
  EXPECT_TRUE(trim.trim(kBegan));
  auto more = blocks_of_a_thread();
  free_all_but_the_last(more);

  EXPECT_FALSE(trim.trim(kBegan + HeapTrim::kBetween - Nanoseconds(1)));
  EXPECT_TRUE(trim.trim(kBegan + HeapTrim::kBetween));
}

TEST(HeapTrimTest, LeavesLittleAlone) {
  if (!kIsOfGlibc) GTEST_SKIP() << "another heap than glibc's";
  HeapTrim trim;
  trim.trim(kBegan);
  const auto blocks = blocks_of_a_thread();  // In use.

  EXPECT_FALSE(trim.trim(kBegan + HeapTrim::kBetween));
}

}  // namespace
}  // namespace leat
