#include "leat/profiler/page_cache.h"

#include <gtest/gtest.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace leat {
namespace {

constexpr std::uint64_t kBytes = 1'000'000;

class PageCacheTest : public ::testing::Test {
 protected:
  void SetUp() override { std::ofstream(file_) << std::string(kBytes, 'x'); }
  void TearDown() override { std::filesystem::remove(file_); }

  /// A file system in memory drops nothing.
  bool is_in_memory() const {
    constexpr auto kTmpfsMagic = 0x01021994;
    struct statfs info {};
    return ::statfs(file_.c_str(), &info) == 0 && info.f_type == kTmpfsMagic;
  }

  const std::filesystem::path file_ =
      std::filesystem::temp_directory_path() /
      ("leat_page_cache_test." + std::to_string(::getpid()));
  const std::vector<std::filesystem::path> files_ = {file_, "/does/not/exist"};
};

TEST_F(PageCacheTest, DroppedPagesAreGoneAndReadOnesAreThere) {
  ASSERT_TRUE(read_into_page_cache(files_, {}));
  EXPECT_EQ(residency_of(files_).bytes, kBytes);
  EXPECT_EQ(residency_of(files_).resident_bytes, kBytes);

  if (is_in_memory())
    GTEST_SKIP() << "TMPDIR lies in memory, where nothing can be dropped: "
                    "set it to a folder on a disk";
  drop_from_page_cache(files_);
  EXPECT_EQ(residency_of(files_).resident_bytes, 0u);
}

TEST_F(PageCacheTest, WhatIsKeptStaysWhenItIsDropped) {
  ASSERT_TRUE(read_into_page_cache(files_, {}));
  {
    const KeptPages kept(files_, kBytes);
    if (kept.bytes() == 0)
      GTEST_SKIP() << "no memory may be locked here: raise ulimit -l";
    EXPECT_EQ(kept.bytes(), kBytes);
    drop_from_page_cache(files_);
    EXPECT_EQ(residency_of(files_).resident_bytes, kBytes);
  }

  if (is_in_memory()) return;
  drop_from_page_cache(files_);
  EXPECT_EQ(residency_of(files_).resident_bytes, 0u) << "it is free again";
}

TEST_F(PageCacheTest, NoMoreIsKeptThanAsked) {
  EXPECT_EQ(KeptPages(files_, kBytes - 1).bytes(), 0u);
}

TEST_F(PageCacheTest, AStopEndsTheReading) {
  std::stop_source stop;
  stop.request_stop();

  const auto read = read_into_page_cache(files_, stop.get_token());

  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code(), ErrorCode::kCancelled);
}

}  // namespace
}  // namespace leat
