// How the limit of a folder is dealt out among its writers: the room of their
// files counts.

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "leat/cache/cached_store.h"
#include "leat/cache/inspect.h"
#include "leat/cache/testing/cached_store_fixture.h"

namespace leat {
namespace {

using testing::CountingStore;
using testing::kLength;
using testing::Reader;

class SplitLimitTest : public testing::CachedStoreTest {
 protected:
  // The limit of all writers together.
  static constexpr std::uint64_t kRecords = 36;
  static constexpr std::uint64_t kLimit = kRecords * record_cost(kLength);

  SplitLimitTest() {
    options_.refresh_every = options_.catch_up_every =
        std::chrono::milliseconds(1);
  }

  std::unique_ptr<SegmentTier> open_tier(Metrics* metrics) {
    return *SegmentTier::open(*open_segment_folder(folder_, ops_),
                              {.limit_bytes = kLimit,
                               .expected_writers = ranks_,
                               .segment_bytes = segment_bytes_,
                               .source = 1},
                              ops_, clock_, metrics);
  }

  std::uint32_t ranks_ = 1;  // The ranks of a job.
  std::uint64_t segment_bytes_ = 64 * kKiB;

  /// A training of its own, on the same folder.
  struct Job {
    std::string name;
    Metrics metrics = {};
    AccessTime now = 0;
    std::unique_ptr<CachedStore> store = nullptr;
  };
  void open(Job& job) {
    std::vector<CacheTier> tiers;
    tiers.push_back({.level = CacheLevel::kDisk,
                     .tier = open_tier(&job.metrics),
                     .policy = *RecordPolicy::make(
                         {.samples = 100, .capacity = kLimit / ranks_}),
                     .is_lasting = true});
    job.store =
        std::make_unique<CachedStore>(std::make_unique<CountingStore>(reads_),
                                      std::move(tiers), options_, &job.metrics);
  }
  static RecordId id_of(const Job& job, std::uint64_t n) {
    return {.object = {.key = job.name + std::to_string(n), .etag = "e"},
            .length_bytes = kLength};
  }
  void read(Job& job, std::uint64_t n, AccessTime next_use) {
    Reader reader;
    const RecordId id = id_of(job, n);
    job.store->read({.object = id.object,
                     .into = reader.buffer.span(),
                     .observer = &reader,
                     .hint = ReadHint{.now = ++job.now, .next_use = next_use}},
                    {}, reader.done());
    reader.is_done.wait();
    EXPECT_TRUE(reader.result);
    job.store->drain();
  }
  /// Its job has gone.
  void leave_what_a_run_read(const std::string& name) {
    Job earlier{.name = name};
    open(earlier);
    for (std::uint64_t n = 0; n < kRecords; ++n) read(earlier, n, 5000 + n);
  }
  static bool holds(const Job& job, std::uint64_t n) {
    return job.store->record_bytes(id_of(job, n)).has_value();
  }
  /// By what it says itself.
  static std::uint64_t held(const Job& job) {
    return static_cast<std::uint64_t>(
               job.metrics.value(Metric::kCacheDiskBytes)) /
           record_cost(kLength);
  }
  /// An n-th of the limit, except for the room that a file system takes for
  /// itself.
  static bool is_share(std::uint64_t records, std::uint64_t n) {
    return records <= kRecords / n && records + 2 >= kRecords / n;
  }
  /// By what the files of all hold.
  std::uint64_t held_by_all() {
    std::uint64_t records = 0;
    const auto found = inspect_cache(folder_, Bodies::kCheck, ops_, {});
    for (const SegmentReport& report : *found) {
      EXPECT_EQ(report.bad, 0u);
      records += report.records;
    }
    return records;
  }
  /// Waits until each of two ranks sees the records that the other has written
  /// and dropped. Nobody reads meanwhile, so that takes milliseconds.
  static void wait_until_they_agree(const Job& one, const Job& other) {
    for (std::uint64_t n = 0; n < kRecords; ++n) {
      while (holds(one, n) != holds(other, n)) std::this_thread::yield();
    }
  }
  /// Reads of `job`, over and over, until it is so: others' writes are seen
  /// within milliseconds.
  void read_until(Job& job, const std::function<bool()>& is_so) {
    constexpr std::uint64_t kOfMine = 60;
    int tries = 0;
    for (; !is_so() && tries < 100'000; ++tries) {
      const std::uint64_t n = static_cast<std::uint64_t>(tries) % kOfMine;
      read(job, n, 1'000'000 + n);
    }
    EXPECT_TRUE(is_so()) << tries;
  }
};

TEST_F(SplitLimitTest, WhoWasFirstMakesRoomByItsPlanUntilEachHasItsShare) {
  Job first{.name = "a"};
  open(first);
  for (std::uint64_t n = 0; n < kRecords; ++n) read(first, n, 5000 + n);
  ASSERT_EQ(held_by_all(), kRecords);

  Job second{.name = "b"};
  open(second);
  read_until(second, [&] {
    return is_share(held(second), 2) && is_share(held(first), 2);
  });

  EXPECT_LE(held_by_all(), kRecords);
  // The record that is used last goes.
  for (std::uint64_t n = 0; n < kRecords; ++n) {
    if (n + 2 < kRecords / 2) {
      EXPECT_TRUE(holds(first, n)) << n;
    } else if (n >= kRecords / 2) {
      EXPECT_FALSE(holds(first, n)) << n;
    }
  }
}

TEST_F(SplitLimitTest, ThreeHaveAThirdEachUntilOneOfThemLeaves) {
  Job first{.name = "a"};
  Job second{.name = "b"};
  Job third{.name = "c"};
  open(first);
  for (std::uint64_t n = 0; n < kRecords; ++n) read(first, n, 5000 + n);
  open(second);
  open(third);

  read_until(second, [&] {
    read(third, third.now % 60, 1'000'000 + third.now % 60);
    return is_share(held(second), 3) && is_share(held(third), 3) &&
           is_share(held(first), 3);
  });
  EXPECT_LE(held_by_all(), kRecords);

  third.store.reset();
  first.now = second.now += 10 * options_.epoch_time;
  // A rank that takes its segments over frees the records in them that it does
  // not want.
  read_until(second, [&] {
    read(first, first.now % 60, 1'000'000 + first.now % 60);
    return is_share(held(second), 2) && is_share(held(first), 2);
  });
  EXPECT_LE(held_by_all(), kRecords);
}

TEST_F(SplitLimitTest, TwoWhoSeeTheSameRoomFreeDoNotBothTakeIt) {
  const std::string body(kLength, 'x');
  std::uint64_t n = 0;
  const auto fill = [&](SegmentTier& tier, std::uint64_t most) {
    std::uint64_t written = 0;
    while (written < most &&
           tier.insert({.high = ++n, .low = n}, as_bytes(body))) {
      ++written;
    }
    return written;
  };
  const auto incumbent = open_tier(&metrics_);
  ASSERT_EQ(fill(*incumbent, kRecords * 2 / 3), kRecords * 2 / 3);

  const auto one = open_tier(&metrics_);
  const auto other = open_tier(&metrics_);
  ASSERT_GT(one->allowed_bytes() + other->allowed_bytes(), kLimit / 3);
  std::uint64_t written = 0;
  for (std::uint64_t round = 0; round < kRecords; ++round) {
    written += fill(*one, 1) + fill(*other, 1);
  }

  EXPECT_GT(written, 0u);
  EXPECT_LE(held_by_all(), kRecords);
  EXPECT_LE(incumbent->used_bytes() + one->used_bytes() + other->used_bytes(),
            kLimit);
}

TEST_F(SplitLimitTest, WhatAnEarlierRunLeftMakesRoomForAJoinerToo) {
  const std::string body(kLength, 'x');
  {
    const auto earlier = open_tier(&metrics_);
    for (std::uint64_t n = 1; n <= kRecords; ++n) {
      ASSERT_TRUE(earlier->insert({.high = n, .low = n}, as_bytes(body)));
    }
  }
  const auto incumbent = open_tier(&metrics_);  // Has taken it over.
  ASSERT_EQ(incumbent->used_bytes(), kLimit);
  ASSERT_TRUE(incumbent->claim({.high = 3, .low = 3}));
  const auto joiner = open_tier(&metrics_);
  EXPECT_FALSE(joiner->insert({.high = 99, .low = 99}, as_bytes(body)));

  incumbent->refresh();
  joiner->refresh();

  EXPECT_EQ(incumbent->used_bytes(), kLimit / 2);
  EXPECT_TRUE(incumbent->holds({.high = 3, .low = 3}));
  EXPECT_GT(joiner->allowed_bytes(), kLimit / 4);
  EXPECT_TRUE(joiner->insert({.high = 99, .low = 99}, as_bytes(body)));
}

// A rank reads other samples in each epoch: that it has not claimed a record
// says little about whether the others want it.
TEST_F(SplitLimitTest, WhatAnEarlierRunLeftServesAllRanksInEveryEpoch) {
  constexpr std::uint64_t kSamples = 2 * kRecords;
  segment_bytes_ = 2 * kPageBytes;
  leave_what_a_run_read("a");
  ranks_ = 2;
  Job even{.name = "a"};
  Job odd{.name = "a"};
  open(even);
  open(odd);

  for (std::uint64_t epoch = 0; epoch < 4; ++epoch) {
    even.now = odd.now = epoch * options_.epoch_time;
    reads_ = 0;
    for (std::uint64_t p = 0; p < kSamples; ++p) {
      const std::uint64_t n = (31 * p + 17 * epoch) % kSamples;
      read(p % 2 == 0 ? even : odd, n, (epoch + 1) * options_.epoch_time + n);
    }
    EXPECT_EQ(reads_, static_cast<int>(kSamples - kRecords)) << epoch;
  }
}

TEST_F(SplitLimitTest, WhatAnEarlierRunLeftAndNoRankReadsMakesRoom) {
  segment_bytes_ = 2 * kPageBytes;
  leave_what_a_run_read("other data ");
  ranks_ = 2;
  Job even{.name = "a"};
  Job odd{.name = "a"};
  open(even);
  open(odd);

  for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
    even.now = odd.now = epoch * options_.epoch_time;
    reads_ = 0;
    for (std::uint64_t n = 0; n < kRecords; ++n) {
      Job& job = (n + epoch) % 2 == 0 ? even : odd;
      read(job, n, (epoch + 1) * options_.epoch_time + n);
    }
    wait_until_they_agree(even, odd);
  }

  EXPECT_LT(reads_, static_cast<int>(kRecords) / 4);
}

TEST_F(SplitLimitTest, WhileAnotherKeepsTheLockOfTheFolderNothingMoreIsTaken) {
  const std::string body(kLength, 'x');
  FakeClock clock;
  const auto tier =
      *SegmentTier::open(*open_segment_folder(folder_, ops_),
                         {.limit_bytes = kLimit}, ops_, clock, &metrics_);
  auto lock = lock_folder(folder_, ops_);
  ASSERT_TRUE(lock && *lock);

  EXPECT_FALSE(tier->insert({.high = 1, .low = 1}, as_bytes(body)));
  EXPECT_EQ(metrics_.value(Metric::kCacheTierFailures), 1);
  lock.reset();
  clock.advance(std::chrono::minutes(1));

  EXPECT_TRUE(tier->insert({.high = 1, .low = 1}, as_bytes(body)));
}

}  // namespace
}  // namespace leat
