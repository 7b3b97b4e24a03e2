// Several tiers on one folder. Locks are of open files, so two tiers in one
// process stand to each other as two processes do.

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>
#include <vector>

#include "leat/base/buffer.h"
#include "leat/base/units.h"
#include "leat/cache/segment_tier.h"
#include "leat/cache/testing/faulty_file_ops.h"

namespace leat {
namespace {

class SegmentSharingTest : public ::testing::Test {
 protected:
  SegmentSharingTest() {
    std::string name = ::testing::TempDir() + "leat-sharing-XXXXXX";
    folder_ = ::mkdtemp(name.data());
  }
  ~SegmentSharingTest() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<SegmentTier> open(std::uint64_t limit_bytes = kMiB) {
    auto tier = SegmentTier::open(
        *open_segment_folder(folder_, ops_),
        {.limit_bytes = limit_bytes, .segment_bytes = 64 * kKiB}, ops_, clock_,
        &metrics_);
    EXPECT_TRUE(tier) << tier.error().message();
    return *std::move(tier);
  }
  static RecordKey key_of(std::uint64_t n) { return {.high = n, .low = n}; }
  static bool insert(SegmentTier& tier, std::uint64_t n) {
    return tier.insert(key_of(n), as_bytes(std::to_string(1000 + n)));
  }
  static bool read(SegmentTier& tier, std::uint64_t n) {
    std::string got(4, ' ');
    if (!tier.read(key_of(n), std::as_writable_bytes(std::span(got)))) {
      return false;
    }
    EXPECT_EQ(got, std::to_string(1000 + n));
    return true;
  }

  const std::uint64_t cost_ = record_cost(4);
  std::string folder_;
  testing::FaultyFileOps ops_;
  FakeClock clock_;
  Metrics metrics_;
};

TEST_F(SegmentSharingTest, EachSeesWhatTheOthersWriteAndDrop) {
  const auto a = open();
  const auto b = open();
  ASSERT_TRUE(insert(*b, 2));
  ASSERT_TRUE(insert(*a, 1));
  EXPECT_FALSE(read(*b, 1));

  a->refresh();
  b->refresh();
  EXPECT_TRUE(read(*a, 2));
  EXPECT_TRUE(read(*b, 1));
  a->drop(key_of(1));
  EXPECT_FALSE(read(*b, 1));  // A hole: a miss, before the refresh too.
  b->refresh();

  EXPECT_EQ(b->records(), 1u);
}

TEST_F(SegmentSharingTest, WhoCatchesUpSeesWhatIsNewInWhatItKnows) {
  const auto a = open();
  const auto b = open();
  ASSERT_TRUE(insert(*a, 1));
  ASSERT_TRUE(insert(*a, 2));
  b->catch_up();
  EXPECT_FALSE(read(*b, 3));

  ASSERT_TRUE(insert(*a, 3));
  a->drop(key_of(1));
  b->catch_up();

  EXPECT_TRUE(read(*b, 2));
  EXPECT_TRUE(read(*b, 3));
  EXPECT_FALSE(b->holds(key_of(1)));
}

TEST_F(SegmentSharingTest, NobodyDropsOrRewritesWhatAnotherHolds) {
  const auto a = open();
  const auto b = open();
  ASSERT_TRUE(insert(*a, 1));
  b->refresh();

  b->drop(key_of(1));
  EXPECT_FALSE(b->claim(key_of(1)));
  EXPECT_FALSE(insert(*b, 1));

  EXPECT_TRUE(read(*a, 1));
  EXPECT_TRUE(read(*b, 1));
  EXPECT_EQ(b->used_bytes(), 0u);
}

TEST_F(SegmentSharingTest, TheSegmentsOfADeadWriterAreTakenOver) {
  auto a = open();
  const auto b = open();
  const auto c = open();
  ASSERT_TRUE(insert(*a, 1));
  b->refresh();
  EXPECT_EQ(b->used_bytes(), 0u);
  a.reset();

  b->refresh();
  c->refresh();

  EXPECT_EQ(b->used_bytes(), cost_);
  EXPECT_EQ(c->used_bytes(), 0u);
  EXPECT_TRUE(read(*b, 1));
  EXPECT_TRUE(read(*c, 1));
  b->drop(key_of(1));
  EXPECT_FALSE(read(*c, 1));
}

TEST_F(SegmentSharingTest, TheLimitIsSplitAmongLiveWriters) {
  const auto a = open(/*limit_bytes=*/40 * cost_);
  EXPECT_EQ(a->allowed_bytes(), 40 * cost_);
  auto b = open(40 * cost_);
  a->refresh();
  EXPECT_EQ(a->allowed_bytes(), 20 * cost_);

  b.reset();
  a->refresh();

  EXPECT_EQ(a->allowed_bytes(), 40 * cost_);
}

TEST_F(SegmentSharingTest, SharesThatAreToldReplaceTheEvenOnesAndStillAddUp) {
  const std::uint64_t limit = 40 * cost_;
  const auto a = open(limit);
  const auto b = open(limit);
  const auto fill = [](SegmentTier& tier, std::uint64_t from) {
    std::uint64_t written = 0;
    while (written < 100 && insert(tier, from + written)) ++written;
    return written;
  };
  a->set_share(30 * cost_);
  b->set_share(10 * cost_);
  EXPECT_EQ(fill(*a, 0), 30u);
  EXPECT_EQ(fill(*b, 100), 10u);
  b->set_share(30 * cost_);  // More, but nobody has made room yet.
  EXPECT_EQ(b->allowed_bytes(), 10 * cost_);

  for (std::uint64_t n = 0; n < 20; ++n) a->drop(key_of(n));
  a->set_share(10 * cost_);
  EXPECT_FALSE(insert(*a, 300));
  b->refresh();

  EXPECT_EQ(fill(*b, 200), 20u);
  EXPECT_EQ(a->used_bytes() + b->used_bytes(), limit);
  EXPECT_EQ(metrics_.value(Metric::kCacheDiskAllowedBytes),
            static_cast<std::int64_t>(limit));
  a->set_share(std::nullopt);
  b->refresh();
  a->refresh();
  EXPECT_EQ(a->allowed_bytes(), 10 * cost_);  // Half, but the rest is taken.
}

TEST_F(SegmentSharingTest, ASmallerShareFreesWhatNobodyHasClaimed) {
  {
    const auto earlier = open(/*limit_bytes=*/40 * cost_);
    for (std::uint64_t n = 0; n < 20; ++n) ASSERT_TRUE(insert(*earlier, n));
  }
  const auto later = open(40 * cost_);
  ASSERT_EQ(later->used_bytes(), 20 * cost_);
  ASSERT_TRUE(later->claim(key_of(7)));

  later->set_share(5 * cost_);

  EXPECT_EQ(later->used_bytes(), 5 * cost_);
  EXPECT_TRUE(read(*later, 7));
}

TEST_F(SegmentSharingTest, AJoinerWritesWhatIsFree) {
  const std::string big(100 * kKiB, 'x');
  const auto a = open(/*limit_bytes=*/kMiB);
  for (std::uint64_t n = 0; n < 9; ++n) {
    ASSERT_TRUE(a->insert(key_of(n), as_bytes(big)));
  }

  const auto b = open(kMiB);

  EXPECT_LT(b->allowed_bytes(), kMiB / 4);
  EXPECT_FALSE(b->insert(key_of(100), as_bytes(std::string(kMiB / 4, 'y'))));
  EXPECT_TRUE(insert(*b, 200));
}

TEST_F(SegmentSharingTest, ASegmentUnlinkedByItsWriterIsForgotten) {
  const auto a = open();
  const auto b = open();
  for (std::uint64_t n = 0; n < 30; ++n) ASSERT_TRUE(insert(*a, n));
  b->refresh();
  const std::uint64_t before = b->segments();
  for (std::uint64_t n = 0; n < 30; ++n) a->drop(key_of(n));

  b->refresh();

  EXPECT_LT(b->segments(), before);
  EXPECT_EQ(b->records(), 0u);
}

TEST_F(SegmentSharingTest, WhatItsWriterCopiesOnIsStillFoundByTheOthers) {
  const auto a = open();
  const auto b = open();
  for (std::uint64_t n = 0; n < 30; ++n) ASSERT_TRUE(insert(*a, n));
  b->refresh();
  const std::uint64_t before = a->segments();
  for (std::uint64_t n = 0; n < 14; ++n) a->drop(key_of(n));

  b->catch_up();  // Sees the copies in the segment that it knows,
  b->refresh();   // and that the other segment is gone.

  EXPECT_EQ(a->segments(), before);  // One is gone, and one came.
  for (std::uint64_t n = 14; n < 30; ++n) {
    EXPECT_TRUE(read(*a, n)) << n;
    EXPECT_TRUE(read(*b, n)) << n;
  }
}

TEST_F(SegmentSharingTest, WhatADeadWriterLeftHalfMadeIsCleaned) {
  const std::string half = folder_ + "/segment-00000000000000aa.new";
  std::filesystem::copy_file("/proc/self/status", half);
  const std::string foreign = folder_ + "/notes.txt";
  std::filesystem::copy_file("/proc/self/status", foreign);

  const auto tier = open();

  EXPECT_FALSE(std::filesystem::exists(half));
  EXPECT_TRUE(std::filesystem::exists(foreign));
}

TEST_F(SegmentSharingTest, BytesOfATornBodyAreReclaimed) {
  std::string path;
  {
    const auto tier = open();
    ASSERT_TRUE(insert(*tier, 1));
    path = std::filesystem::directory_iterator(folder_)->path();
    // As if it had died between a body and its entry.
    const std::string body(8 * kMiB, 'x');
    FILE* file = ::fopen(path.c_str(), "r+");
    ASSERT_NE(file, nullptr);
    ::fseek(file, 0, SEEK_END);
    ASSERT_EQ(::fwrite(body.data(), 1, body.size(), file), body.size());
    ::fclose(file);
  }
  const auto allocated = [&] {
    struct stat now {};
    EXPECT_EQ(::stat(path.c_str(), &now), 0);
    return static_cast<std::uint64_t>(now.st_blocks) * 512;
  };
  ASSERT_GT(allocated(), 7 * kMiB);

  const auto tier = open();

  EXPECT_LT(allocated(), kMiB);
  EXPECT_TRUE(read(*tier, 1));
}

/// Ranks of one job over what an earlier run has left: in 8 segments of 8
/// records each, as full as the limit lets them be.
class EarlierRunTest : public SegmentSharingTest {
 protected:
  static constexpr std::uint64_t kRecords = 64;
  const std::string body_ = std::string(kPageBytes, 'x');
  const std::uint64_t limit_ = kRecords * record_cost(kPageBytes);

  EarlierRunTest() { run_before(1); }

  /// Fills the folder, anew, with this many ranks.
  void run_before(std::uint32_t ranks) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directory(folder_);
    std::vector<std::unique_ptr<SegmentTier>> earlier;
    earlier.reserve(ranks);
    for (std::uint32_t r = 0; r < ranks; ++r) {
      earlier.push_back(open_rank(ranks));
    }
    for (std::uint64_t n = 0; n < kRecords; ++n) {
      EXPECT_TRUE(earlier[n % ranks]->insert(key_of(n), as_bytes(body_))) << n;
    }
    earlier.front()->refresh();
    EXPECT_EQ(earlier.front()->segments(), 8u);
  }

  std::unique_ptr<SegmentTier> open_rank(std::uint32_t ranks) {
    return open_rank(ranks, limit_);
  }
  std::unique_ptr<SegmentTier> open_rank(std::uint32_t ranks,
                                         std::uint64_t limit_bytes) {
    return *SegmentTier::open(*open_segment_folder(folder_, ops_),
                              {.limit_bytes = limit_bytes,
                               .expected_writers = ranks,
                               .segment_bytes = 8 * kPageBytes},
                              ops_, clock_, &metrics_);
  }
  /// The records of its own.
  static std::uint64_t own(const SegmentTier& tier) {
    return tier.used_bytes() / record_cost(kPageBytes);
  }
};

TEST_F(EarlierRunTest, EachRankTakesOverItsShareAndNothingIsLost) {
  const auto a = open_rank(4);
  EXPECT_EQ(own(*a), 16u);
  EXPECT_EQ(a->records(), kRecords);
  EXPECT_EQ(a->allowed_bytes(), limit_ / 4);
  a->refresh();  // The others are late.
  EXPECT_EQ(own(*a), 16u);
  EXPECT_EQ(a->records(), kRecords);

  const auto b = open_rank(4);
  const auto c = open_rank(4);
  const auto d = open_rank(4);

  for (const auto* rank : {&a, &b, &c, &d}) {
    (*rank)->refresh();
    EXPECT_EQ(own(**rank), 16u);
    EXPECT_EQ((*rank)->records(), kRecords);
    EXPECT_EQ((*rank)->allowed_bytes(), limit_ / 4);
  }
}

TEST_F(EarlierRunTest, OfMoreOrFewerRanksThanNowNothingIsLost) {
  for (const std::uint32_t ranks : {1U, 2U, 8U}) {
    run_before(4);
    std::vector<std::unique_ptr<SegmentTier>> now;
    for (std::uint32_t r = 0; r < ranks; ++r) {
      now.push_back(open_rank(ranks));
      EXPECT_EQ(own(*now.back()), kRecords / ranks) << r << " of " << ranks;
      EXPECT_EQ(now.back()->records(), kRecords);
    }
    for (const auto& rank : now) {
      rank->refresh();
      EXPECT_EQ(own(*rank), kRecords / ranks) << ranks;
      EXPECT_EQ(rank->allowed_bytes(), limit_ / ranks) << ranks;
    }
  }
}

TEST_F(EarlierRunTest, WhatFitsIntoNoShareIsTakenOverOnceAllRanksAreHere) {
  const auto a = open_rank(3);
  const auto b = open_rank(3);
  const auto c = open_rank(3);
  EXPECT_EQ(own(*a) + own(*b) + own(*c), 48u);
  EXPECT_EQ(c->records(), kRecords);

  for (int i = 0; i < 2; ++i) {  // Each sees that all are here, then takes.
    a->refresh();
    b->refresh();
    c->refresh();
  }

  EXPECT_EQ(own(*a) + own(*b) + own(*c), kRecords);
  for (const auto* rank : {&a, &b, &c}) {
    EXPECT_LE(own(**rank), 24u);
    EXPECT_EQ((*rank)->records(), kRecords);
  }
}

TEST_F(EarlierRunTest, OfOneRankWhatItHasNotReadInAnEpochIsNotWanted) {
  const auto alone = open_rank(1);
  for (std::uint64_t n = 0; n < kRecords; ++n) alone->claim(key_of(n));
  EXPECT_FALSE(alone->wants_strangers());  // It has seen all there is.
}

TEST_F(EarlierRunTest, IsWantedByAllIfARankOfFourWantsAnEighth) {
  const auto a = open_rank(4);
  ASSERT_EQ(own(*a), 16u);
  std::vector<std::uint64_t> mine;
  for (std::uint64_t n = 0; n < kRecords; ++n) {
    if (a->claim(key_of(n))) mine.push_back(n);
  }
  EXPECT_EQ(mine.size(), 16u);
  const auto b = open_rank(4);
  EXPECT_FALSE(b->wants_strangers());
  std::uint64_t claimed = 0;
  for (std::uint64_t n = 0; n < kRecords && claimed < 2; ++n) {
    EXPECT_FALSE(b->wants_strangers());
    claimed += b->claim(key_of(n)) ? 1 : 0;
    (void)b->claim(key_of(n));  // Once is enough.
  }

  EXPECT_TRUE(b->wants_strangers());
}

TEST_F(EarlierRunTest, BeyondASmallerLimitItGoes) {
  for (const std::uint64_t part : {2U, 16U}) {  // 16: less than a segment each.
    run_before(1);
    const auto a = open_rank(2, limit_ / part);
    const auto b = open_rank(2, limit_ / part);

    for (int i = 0; i < 3; ++i) {
      a->refresh();
      b->refresh();
    }

    EXPECT_LE(a->used_bytes() + b->used_bytes(), limit_ / part);
    EXPECT_EQ(a->records(), own(*a) + own(*b));
    EXPECT_GE(a->records(), kRecords / part / 2);
  }
}

TEST_F(EarlierRunTest, AnotherJobThatJoinsIsNoRankOfOurs) {
  const auto a = open_rank(2);
  const auto b = open_rank(2);
  ASSERT_EQ(own(*a) + own(*b), kRecords);

  const auto other = open_rank(1);
  a->refresh();
  b->refresh();

  EXPECT_LE(a->used_bytes(), limit_ / 3);
  EXPECT_LE(b->used_bytes(), limit_ / 3);
}

}  // namespace
}  // namespace leat
