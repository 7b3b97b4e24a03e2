#include "leat/cache/segment_tier.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "leat/base/buffer.h"
#include "leat/base/units.h"
#include "leat/cache/testing/faulty_file_ops.h"

namespace leat {
namespace {

using testing::FaultyFileOps;
using testing::FileCall;

RecordKey tier_key(std::uint64_t n) {
  return record_key(
      {.url = "mem://a", .etag = "\"1\"", .offset = n, .length_bytes = 1});
}

/// The body of record `n`: of odd lengths, and no two alike.
std::string body_of(std::uint64_t n, std::size_t length = 3000) {
  std::string body(length + n % 7, '\0');
  std::mt19937_64 bits(n);
  for (char& c : body) c = static_cast<char>(bits());
  return body;
}

/// The backings of one implementation, and memory that cannot be mapped.
enum class Backing { kMemory, kUnmapped, kFolder };

std::string name_of(const ::testing::TestParamInfo<Backing>& backing) {
  switch (backing.param) {
    case Backing::kMemory:
      return "Memory";
    case Backing::kUnmapped:
      return "Unmapped";
    case Backing::kFolder:
      return "Folder";
  }
  return "";
}

class SegmentTierTest : public ::testing::TestWithParam<Backing> {
 protected:
  SegmentTierTest() {
    std::string name = ::testing::TempDir() + "leat-tier-XXXXXX";
    folder_ = ::mkdtemp(name.data());
    if (GetParam() == Backing::kUnmapped) ops_.refuse_maps();
  }
  ~SegmentTierTest() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<SegmentFiles> files() {
    if (GetParam() == Backing::kFolder) {
      return *open_segment_folder(folder_, ops_);
    }
    return open_segment_memory(ops_);
  }
  std::unique_ptr<SegmentTier> open(std::uint64_t limit_bytes,
                                    std::uint64_t segment_bytes = 64 * kKiB) {
    auto tier = SegmentTier::open(files(),
                                  {.name = "test",
                                   .limit_bytes = limit_bytes,
                                   .segment_bytes = segment_bytes},
                                  ops_, clock_, &metrics_);
    EXPECT_TRUE(tier) << tier.error().message();
    return *std::move(tier);
  }
  static bool insert(SegmentTier& tier, std::uint64_t n) {
    return tier.insert(tier_key(n), as_bytes(body_of(n)));
  }
  /// True for a hit, which is always the right bytes.
  static bool read(SegmentTier& tier, std::uint64_t n) {
    const std::string wanted = body_of(n);
    std::string got(wanted.size(), ' ');
    if (!tier.read(tier_key(n), std::as_writable_bytes(std::span(got)))) {
      return false;
    }
    EXPECT_EQ(got, wanted) << n;
    return true;
  }

  std::string folder_;
  FaultyFileOps ops_;
  FakeClock clock_;
  Metrics metrics_;
};

INSTANTIATE_TEST_SUITE_P(Backings, SegmentTierTest,
                         ::testing::Values(Backing::kMemory, Backing::kUnmapped,
                                           Backing::kFolder),
                         name_of);

TEST_P(SegmentTierTest, GivesBackWhatWasPutAndNothingElse) {
  const auto tier = open(kMiB);
  for (std::uint64_t n = 0; n < 50; ++n) ASSERT_TRUE(insert(*tier, n));

  for (std::uint64_t n = 0; n < 50; ++n) EXPECT_TRUE(read(*tier, n));
  EXPECT_FALSE(read(*tier, 50));
  std::string other_length(5, ' ');
  EXPECT_FALSE(
      tier->read(tier_key(1), std::as_writable_bytes(std::span(other_length))));
  EXPECT_GT(tier->segments(), 1u);
}

TEST_P(SegmentTierTest, RefusesWhatDoesNotFitAndEvictsNothing) {
  const std::uint64_t cost = record_cost(body_of(0).size());
  const auto tier = open(/*limit_bytes=*/4 * cost);
  for (std::uint64_t n = 0; n < 4; ++n) ASSERT_TRUE(insert(*tier, n));

  EXPECT_FALSE(insert(*tier, 4));
  for (std::uint64_t n = 0; n < 4; ++n) EXPECT_TRUE(read(*tier, n));
  tier->drop(tier_key(2));
  EXPECT_TRUE(insert(*tier, 4));

  EXPECT_FALSE(read(*tier, 2));
  EXPECT_EQ(tier->used_bytes(), 4 * cost);
  EXPECT_EQ(metrics_.value(Metric::kCacheDiskBytes),
            static_cast<std::int64_t>(4 * cost));
}

// Random calls against a map: the records held are right, and so are the
// counts.
TEST_P(SegmentTierTest, DoesWhatAMapDoes) {
  const std::uint64_t cost = record_cost(body_of(0).size());
  const auto tier = open(20 * cost, /*segment_bytes=*/6 * cost);
  std::mt19937_64 draw(1);
  std::vector<bool> held(60);
  std::uint64_t count = 0;
  for (int i = 0; i < 3000; ++i) {
    const std::uint64_t n = draw() % held.size();
    if (draw() % 2 == 0) {
      const bool expected = held[n] || count < 20;
      ASSERT_EQ(insert(*tier, n), expected) << i;
      if (expected && !held[n]) ++count;
      held[n] = held[n] || expected;
    } else {
      tier->drop(tier_key(n));
      if (held[n]) --count;
      held[n] = false;
    }
    ASSERT_EQ(read(*tier, n), held[n]) << i;
    ASSERT_EQ(tier->used_bytes(), count * cost);
  }
  for (std::uint64_t n = 0; n < held.size(); ++n) {
    EXPECT_EQ(read(*tier, n), held[n]) << n;
  }
  // Segments that were mostly dropped were copied on: 20 records need 4
  // segments of 6, and each may be down to a quarter.
  EXPECT_LE(tier->segments(), 17u);
}

TEST_P(SegmentTierTest, DroppedRecordsTakeNoRoomInTheFiles) {
  const auto tier = open(64 * kMiB, kMiB);
  const std::string big(200 * kKiB, 'x');
  for (std::uint64_t n = 0; n < 40; ++n) {
    ASSERT_TRUE(tier->insert(tier_key(n), as_bytes(big)));
  }
  for (std::uint64_t n = 0; n < 40; ++n) {
    if (n % 20 != 0) tier->drop(tier_key(n));
  }

  EXPECT_EQ(tier->records(), 2u);
  EXPECT_LE(tier->segments(), 3u);
  if (GetParam() == Backing::kFolder) {
    std::uint64_t allocated = 0;
    for (const auto& file : std::filesystem::directory_iterator(folder_)) {
      struct stat now {};
      ASSERT_EQ(::stat(file.path().c_str(), &now), 0);
      allocated += static_cast<std::uint64_t>(now.st_blocks) * 512;
    }
    EXPECT_LT(allocated, kMiB);
  }
}

TEST_P(SegmentTierTest, WithoutHolesNothingIsFreed) {
  ops_.fail(FileCall::kPunch, EOPNOTSUPP);
  const std::uint64_t cost = record_cost(body_of(0).size());
  const auto tier = open(2 * cost);
  ASSERT_TRUE(insert(*tier, 0));
  ASSERT_TRUE(insert(*tier, 1));

  tier->drop(tier_key(0));

  EXPECT_FALSE(tier->can_drop());
  EXPECT_TRUE(read(*tier, 0));
  EXPECT_FALSE(insert(*tier, 2));
}

TEST_P(SegmentTierTest, AFullDiskIsLeftAndTriedAgainLater) {
  const auto tier = open(kMiB);
  ASSERT_TRUE(insert(*tier, 0));
  ops_.fail(FileCall::kPwrite, ENOSPC);
  EXPECT_FALSE(insert(*tier, 1));
  const std::uint64_t calls = ops_.calls();

  EXPECT_FALSE(insert(*tier, 1));
  EXPECT_EQ(ops_.calls(), calls);  // Not even tried.
  EXPECT_TRUE(read(*tier, 0));     // A record that is there can be read.
  ops_.heal();
  EXPECT_FALSE(insert(*tier, 1));
  clock_.advance(std::chrono::seconds(11));
  EXPECT_TRUE(insert(*tier, 1));

  EXPECT_EQ(metrics_.value(Metric::kCacheTierFailures), 1);
}

/// Each hit is a pread() here.
using SegmentPreadTest = SegmentTierTest;
INSTANTIATE_TEST_SUITE_P(Backings, SegmentPreadTest,
                         ::testing::Values(Backing::kUnmapped,
                                           Backing::kFolder),
                         name_of);

TEST_P(SegmentPreadTest, AFailingDiskIsLeftForLongerEachTime) {
  const auto tier = open(kMiB);
  ASSERT_TRUE(insert(*tier, 0));
  ops_.fail(FileCall::kPread, EIO);
  EXPECT_FALSE(read(*tier, 0));
  EXPECT_FALSE(tier->may_hold(tier_key(0)));
  clock_.advance(std::chrono::seconds(11));
  EXPECT_TRUE(tier->may_hold(tier_key(0)));
  EXPECT_FALSE(read(*tier, 0));
  clock_.advance(std::chrono::seconds(11));
  EXPECT_FALSE(tier->may_hold(tier_key(0)));
  ops_.heal();
  clock_.advance(std::chrono::seconds(10));

  EXPECT_TRUE(read(*tier, 0));
  EXPECT_EQ(metrics_.value(Metric::kCacheTierFailures), 2);
}

TEST_P(SegmentPreadTest, ASlowDiskIsLeft) {
  const auto tier = open(kMiB);
  ASSERT_TRUE(insert(*tier, 0));
  ops_.set_script([this](FileCall) {
    clock_.advance(std::chrono::seconds(3));
    return 0;
  });

  EXPECT_TRUE(read(*tier, 0));
  EXPECT_FALSE(tier->may_hold(tier_key(0)));
}

using SegmentMemoryTest = SegmentTierTest;
INSTANTIATE_TEST_SUITE_P(Memory, SegmentMemoryTest,
                         ::testing::Values(Backing::kMemory));

TEST_P(SegmentMemoryTest, AHitAsksTheSystemForNothing) {
  const auto tier = open(kMiB);
  for (std::uint64_t n = 0; n < 50; ++n) ASSERT_TRUE(insert(*tier, n));
  const std::uint64_t calls = ops_.calls();

  for (std::uint64_t n = 0; n < 50; ++n) EXPECT_TRUE(read(*tier, n));

  EXPECT_EQ(ops_.calls(), calls);
}

// Damage that a late reader finds is counted and never given out.
TEST_P(SegmentMemoryTest, ReadersBesideAWriterSeeRightBytesOrNone) {
  constexpr std::uint64_t kRecords = 40;
  const auto tier = open(kMiB, /*segment_bytes=*/64 * kKiB);
  std::atomic<bool> is_over = false;
  std::atomic<std::uint64_t> hits = 0;
  std::vector<std::jthread> readers;
  for (std::uint64_t first : {0, 20}) {
    readers.emplace_back([&, first] {
      for (std::uint64_t n = first; !is_over || hits == 0; ++n) {
        if (read(*tier, n % kRecords)) ++hits;
      }
    });
  }
  std::mt19937_64 draw(3);
  for (int i = 0; i < 4000; ++i) {
    const std::uint64_t n = draw() % kRecords;
    if (tier->holds(tier_key(n))) {
      tier->drop(tier_key(n));
    } else {
      ASSERT_TRUE(insert(*tier, n));
    }
  }
  for (std::uint64_t n = 0; n < kRecords; ++n) insert(*tier, n);
  is_over = true;
  readers.clear();

  for (std::uint64_t n = 0; n < kRecords; ++n) EXPECT_TRUE(read(*tier, n));
  EXPECT_EQ(metrics_.value(Metric::kCacheBadRecords), 0);
}

using SegmentFolderTest = SegmentTierTest;
INSTANTIATE_TEST_SUITE_P(Folder, SegmentFolderTest,
                         ::testing::Values(Backing::kFolder));

TEST_P(SegmentFolderTest, ANewTierFindsWhatTheLastOneLeft) {
  const std::uint64_t cost = record_cost(body_of(0).size());
  {
    const auto tier = open(kMiB);
    for (std::uint64_t n = 0; n < 30; ++n) ASSERT_TRUE(insert(*tier, n));
    tier->drop(tier_key(5));
  }
  const auto tier = open(kMiB);

  for (std::uint64_t n = 0; n < 30; ++n) EXPECT_EQ(read(*tier, n), n != 5);
  EXPECT_EQ(tier->used_bytes(), 29 * cost);
}

TEST_P(SegmentFolderTest, ASmallerLimitHoldsForWhatWasLeft) {
  const std::uint64_t cost = record_cost(body_of(0).size());
  {
    const auto tier = open(kMiB);
    for (std::uint64_t n = 0; n < 30; ++n) ASSERT_TRUE(insert(*tier, n));
  }

  const auto tier = open(10 * cost);

  EXPECT_EQ(tier->used_bytes(), 10 * cost);
}

TEST_P(SegmentFolderTest, StrangersGoBeforeTheOwnSource) {
  const std::uint64_t cost = record_cost(body_of(0).size());
  const auto open_for = [&](std::uint64_t source) {
    return *SegmentTier::open(
        files(),
        {.limit_bytes = 4 * cost, .segment_bytes = 64 * kKiB, .source = source},
        ops_, clock_, &metrics_);
  };
  for (const std::uint64_t source : {1, 2}) {
    const auto tier = open_for(source);
    ASSERT_TRUE(insert(*tier, 10 * source));
    ASSERT_TRUE(insert(*tier, 10 * source + 1));
  }
  const auto tier = open_for(2);
  ASSERT_FALSE(insert(*tier, 1));

  EXPECT_TRUE(tier->make_room(2 * cost, /*of_own_source=*/false));
  EXPECT_FALSE(read(*tier, 10));
  EXPECT_TRUE(read(*tier, 20));
  EXPECT_FALSE(tier->make_room(3 * cost, false));
  EXPECT_TRUE(tier->claim(tier_key(20)));
  EXPECT_TRUE(tier->make_room(3 * cost, true));
  EXPECT_TRUE(read(*tier, 20));  // Claimed: the plan's, not a stranger's.
  EXPECT_FALSE(read(*tier, 21));
  EXPECT_FALSE(tier->make_room(4 * cost, true));
}

// Every byte of every file, one after another: never a wrong one is given out.
TEST_P(SegmentFolderTest, AFlippedByteIsAMissAndIsCounted) {
  {
    const auto tier = open(kMiB);
    for (std::uint64_t n = 0; n < 3; ++n) ASSERT_TRUE(insert(*tier, n));
  }
  const auto file = *std::filesystem::directory_iterator(folder_);
  std::fstream bytes(file.path(),
                     std::ios::binary | std::ios::in | std::ios::out);
  const auto flip = [&](std::uint64_t at) {
    bytes.seekg(static_cast<std::streamoff>(at));
    const char c = static_cast<char>(bytes.get());
    bytes.seekp(static_cast<std::streamoff>(at));
    bytes.put(static_cast<char>(c ^ 4)).flush();
  };
  const std::uint64_t size = file.file_size();
  std::uint64_t misses = 0;
  for (std::uint64_t at = 0; at < size; at += 37) {
    if (at >= kEntryBytes && at < kPageBytes) continue;  // Nobody reads it.
    flip(at);
    std::string saved = file.path().string() + ".saved";
    std::filesystem::copy_file(
        file.path(), saved, std::filesystem::copy_options::overwrite_existing);
    {
      const auto tier = open(kMiB);
      for (std::uint64_t n = 0; n < 3; ++n) misses += !read(*tier, n);
    }
    std::filesystem::rename(saved, file.path());
    bytes = std::fstream(file.path(),
                         std::ios::binary | std::ios::in | std::ios::out);
    flip(at);
  }

  EXPECT_GE(misses, 3u * 3000 / 37);
}

TEST_P(SegmentFolderTest, ATornTailIsAMissAndTheRestStands) {
  {
    const auto tier = open(kMiB);
    for (std::uint64_t n = 0; n < 5; ++n) ASSERT_TRUE(insert(*tier, n));
  }
  const auto file = *std::filesystem::directory_iterator(folder_);
  std::filesystem::resize_file(file.path(), file.file_size() - 1);

  const auto tier = open(kMiB);

  for (std::uint64_t n = 0; n < 4; ++n) EXPECT_TRUE(read(*tier, n));
  EXPECT_FALSE(read(*tier, 4));
  EXPECT_EQ(metrics_.value(Metric::kCacheBadRecords), 1);
  EXPECT_TRUE(insert(*tier, 4));
  EXPECT_TRUE(read(*tier, 4));
}

TEST_P(SegmentFolderTest, AFolderThatCannotBeIsAnError) {
  std::ofstream(folder_ + "/file") << "x";

  const auto tier = open_segment_folder(folder_ + "/file", ops_);

  ASSERT_FALSE(tier);
  EXPECT_NE(tier.error().message().find(folder_ + "/file"), std::string::npos);
}

TEST_P(SegmentFolderTest, AReadOnlyFolderIsReadAndNotWritten) {
  {
    const auto tier = open(kMiB);
    ASSERT_TRUE(insert(*tier, 0));
  }
  ops_.fail(FileCall::kPwrite, EROFS);

  const auto tier = open(kMiB);

  EXPECT_TRUE(read(*tier, 0));
  EXPECT_FALSE(insert(*tier, 1));
}

}  // namespace
}  // namespace leat
