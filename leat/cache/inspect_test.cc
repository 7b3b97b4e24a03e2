#include "leat/cache/inspect.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "leat/base/buffer.h"
#include "leat/base/units.h"
#include "leat/cache/segment_tier.h"
#include "leat/cache/testing/faulty_file_ops.h"
#include "leat/metrics/metrics.h"

namespace leat {
namespace {

class InspectTest : public ::testing::Test {
 protected:
  InspectTest() {
    std::string name = ::testing::TempDir() + "leat-inspect-XXXXXX";
    folder_ = ::mkdtemp(name.data());
  }
  ~InspectTest() override { std::filesystem::remove_all(folder_); }
  std::unique_ptr<SegmentTier> open() {
    return *SegmentTier::open(*open_segment_folder(folder_, ops_),
                              {.limit_bytes = kMiB}, ops_, clock_, nullptr);
  }
  void put_three() {
    const auto tier = open();
    for (std::uint64_t n = 0; n < 4; ++n) {
      ASSERT_TRUE(tier->insert({.high = n, .low = n}, as_bytes("0123456789")));
    }
    tier->drop({.high = 1, .low = 1});
  }

  std::string folder_;
  SystemFileOps ops_;
  SteadyClock clock_;
};

TEST_F(InspectTest, TellsWhatASegmentHolds) {
  put_three();

  const auto found = inspect_cache(folder_, Bodies::kCheck, ops_, {});

  ASSERT_TRUE(found);
  ASSERT_EQ(found->size(), 1u);
  EXPECT_EQ(found->front().records, 3u);
  EXPECT_EQ(found->front().record_bytes, 30u);
  EXPECT_EQ(found->front().bad, 0u);
  EXPECT_FALSE(found->front().is_in_use);
}

TEST_F(InspectTest, TellsHowFarItIs) {
  put_three();
  std::vector<InspectProgress> told;
  const auto hear = [&](const InspectProgress& now) { told.push_back(now); };

  ASSERT_TRUE(inspect_cache(folder_, Bodies::kCheck, ops_, {}, hear));

  ASSERT_EQ(told.size(), 4u);  // The segment, and each of its records.
  EXPECT_EQ(told[0].done_bytes, 0u);
  EXPECT_EQ(told[3].done_bytes, 30u);
  EXPECT_GE(told[3].all_bytes, 30u);
}

TEST_F(InspectTest, CountsBodiesThatAreWrong) {
  put_three();
  const std::string path = segment_paths(folder_).front();
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);

  const auto trusted = inspect_cache(folder_, Bodies::kTrust, ops_, {});
  const auto checked = inspect_cache(folder_, Bodies::kCheck, ops_, {});

  EXPECT_EQ(trusted->front().bad, 0u);
  EXPECT_EQ(checked->front().bad, 1u);
}

TEST_F(InspectTest, ClearsWhatNobodyUsesAndNothingElse) {
  put_three();
  std::ofstream(folder_ + "/segment-0000000000000001.leat") << "not a segment";
  std::ofstream(folder_ + "/notes.txt") << "mine";
  {
    const auto user = open();
    const auto cleared = clear_cache(folder_, ops_);
    ASSERT_TRUE(cleared);
    EXPECT_EQ(cleared->in_use, 1u);
    EXPECT_EQ(cleared->removed, 1u);
    std::string got(10, ' ');
    EXPECT_TRUE(user->read({.high = 0, .low = 0},
                           std::as_writable_bytes(std::span(got))));
  }

  const auto cleared = clear_cache(folder_, ops_);

  EXPECT_EQ(cleared->removed, 1u);
  EXPECT_TRUE(segment_paths(folder_).empty());
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/notes.txt"));
}

/// Flips a bit of byte `at` of the only segment; returns its path.
std::string flip(const std::string& folder, long at) {
  std::string path = segment_paths(folder).front();
  FILE* file = ::fopen(path.c_str(), "r+");
  EXPECT_NE(file, nullptr);
  ::fseek(file, at, SEEK_SET);
  const int byte = ::fgetc(file);
  ::fseek(file, at, SEEK_SET);
  ::fputc(byte ^ 1, file);
  ::fclose(file);
  return path;
}

TEST_F(InspectTest, AHeaderWithABitFlippedIsBadAndNotForeign) {
  for (const long at : {0L, 3L, 9L, 13L, 20L, 30L, 61L}) {
    put_three();
    const std::string path = flip(folder_, at);

    const auto found = inspect_cache(folder_, Bodies::kCheck, ops_, {});

    ASSERT_EQ(found->size(), 1u);
    EXPECT_TRUE(found->front().is_ours) << at;
    EXPECT_TRUE(found->front().is_damaged) << at;
    EXPECT_EQ(found->front().bad, 1u) << at;
    EXPECT_GT(found->front().allocated_bytes, 0u) << at;
    std::filesystem::remove(path);
  }
}

TEST_F(InspectTest, AForeignFileIsNotBad) {
  std::ofstream(folder_ + "/segment-0000000000000001.leat") << "not a segment";

  const auto found = inspect_cache(folder_, Bodies::kCheck, ops_, {});

  ASSERT_EQ(found->size(), 1u);
  EXPECT_FALSE(found->front().is_ours);
  EXPECT_EQ(found->front().bad, 0u);
}

TEST_F(InspectTest, WhatMayNotBeReadSaysWhy) {
  put_three();
  testing::FaultyFileOps ops;
  ops.fail(testing::FileCall::kOpen, EACCES);

  const auto found = inspect_cache(folder_, Bodies::kCheck, ops, {});

  ASSERT_EQ(found->size(), 1u);
  EXPECT_EQ(found->front().unread, "Permission denied");
  EXPECT_FALSE(found->front().is_ours);
}

TEST_F(InspectTest, ASegmentWithADamagedHeaderIsRemovedByWhoTakesItsLock) {
  put_three();
  const std::string path = flip(folder_, 3);
  const std::string foreign = folder_ + "/segment-0000000000000001.leat";
  std::ofstream(foreign) << "not a segment";
  Metrics metrics;

  const auto tier =
      *SegmentTier::open(*open_segment_folder(folder_, ops_),
                         {.limit_bytes = kMiB}, ops_, clock_, &metrics);

  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_TRUE(std::filesystem::exists(foreign));
  EXPECT_EQ(metrics.value(Metric::kCacheBadRecords), 1);
  EXPECT_EQ(tier->records(), 0u);
}

TEST_F(InspectTest, WhatALiveWriterHoldsBehindADamagedHeaderTakesItsRoom) {
  const auto writer = open();
  const std::string body(100 * kKiB, 'x');
  for (std::uint64_t n = 0; n < 5; ++n) {
    ASSERT_TRUE(writer->insert({.high = n, .low = n}, as_bytes(body)));
  }
  const std::string path = flip(folder_, 3);

  const auto other = open();

  EXPECT_TRUE(std::filesystem::exists(path));  // Its lock is taken.
  EXPECT_LT(other->allowed_bytes(), kMiB - 5 * body.size());
}

TEST_F(InspectTest, AFolderThatIsNotThereIsAnError) {
  const auto found = inspect_cache(folder_ + "/none", Bodies::kTrust, ops_, {});

  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code(), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace leat
