#include "leat/runtime/heap.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "leat/base/sanitized.h"

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

constexpr TimePoint kBegan(std::chrono::hours(1));

struct FakeHeap {
  std::size_t free_bytes = HeapTrim::kLeastFreeBytes;
  int given_back = 0;

  HeapTrim::Heap heap() {
    return {.free_bytes = [this] { return free_bytes; },
            .give_back = [this] { ++given_back; }};
  }
};

TEST(HeapTrimTest, RestsInBetween) {
  FakeHeap fake;
  HeapTrim trim(fake.heap());

  EXPECT_TRUE(trim.trim(kBegan));
  EXPECT_FALSE(trim.trim(kBegan + HeapTrim::kBetween - Nanoseconds(1)));
  EXPECT_EQ(fake.given_back, 1);
  EXPECT_TRUE(trim.trim(kBegan + HeapTrim::kBetween));
  EXPECT_EQ(fake.given_back, 2);
}

TEST(HeapTrimTest, LeavesLittleAlone) {
  FakeHeap fake{.free_bytes = HeapTrim::kLeastFreeBytes - 1};
  HeapTrim trim(fake.heap());

  EXPECT_FALSE(trim.trim(kBegan));
  EXPECT_EQ(fake.given_back, 0);
}

TEST(HeapTrimTest, GivesBackWhatLiesBetweenBytesInUse) {
#if defined(LEAT_IS_SANITIZED) || !defined(__GLIBC__)
  GTEST_SKIP() << "glibc's heap is not in use: a sanitizer, or another C "
                  "library, has its own; ./dev test runs this test without "
                  "sanitizers, too";
#endif
  std::vector<std::unique_ptr<char[]>> blocks;
  // 100 MB of a thread's heap, whose end stays in use.
  std::thread([&] {
    for (int i = 0; i < 5000; ++i) {
      blocks.push_back(std::make_unique<char[]>(20'000));
    }
  }).join();
  blocks.erase(blocks.begin(), blocks.end() - 1);
  const long before = anonymous_memory();
  ASSERT_GT(before, 90'000);
  HeapTrim trim;

  EXPECT_TRUE(trim.trim(kBegan));

  EXPECT_LT(anonymous_memory(), before - 80'000);
}

}  // namespace
}  // namespace leat
