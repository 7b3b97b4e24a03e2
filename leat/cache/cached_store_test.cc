#include "leat/cache/cached_store.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <latch>
#include <string>

#include "leat/cache/testing/cached_store_fixture.h"
#include "leat/plan/order.h"

namespace leat {
namespace {

using testing::Asked;
using testing::bytes_of;
using testing::CachedStoreTest;
using testing::FileCall;
using testing::kLength;
using testing::Reader;

TEST_F(CachedStoreTest, WhatWasReadOnceIsNotAskedForAgain) {
  open(tier(CacheLevel::kRam, 10));

  EXPECT_EQ(read("a", {}), std::nullopt);
  EXPECT_EQ(read("a", {}), CacheLevel::kRam);

  EXPECT_EQ(reads_, 1);
  EXPECT_EQ(metrics_.value(Metric::kCacheRamHits), 1);
  EXPECT_EQ(metrics_.value(Metric::kCacheMisses), 1);
}

TEST_F(CachedStoreTest, AnotherVersionIsAnotherRecord) {
  open(tier(CacheLevel::kRam, 10));
  EXPECT_EQ(read("a", {.etag = "\"1\""}), std::nullopt);

  EXPECT_EQ(read("a", {.etag = "\"2\""}), std::nullopt);
}

TEST_F(CachedStoreTest, AReadWithoutAHintPassesBy) {
  open(tier(CacheLevel::kRam, 10));
  for (int i = 0; i < 2; ++i) {
    Reader reader;
    store_->read(
        {.object = {.key = "a", .etag = "\"1\""}, .into = reader.buffer.span()},
        {}, reader.done());
    reader.is_done.wait();
  }

  EXPECT_EQ(reads_, 2);
}

TEST_F(CachedStoreTest, WhatHasNoEtagIsKeptForThisRunOnly) {
  open(tier(CacheLevel::kRam, 10), tier(CacheLevel::kDisk, 10));
  EXPECT_EQ(read("a", {.etag = ""}), std::nullopt);
  EXPECT_EQ(read("a", {.etag = ""}), CacheLevel::kRam);

  store_.reset();
  open(tier(CacheLevel::kDisk, 10));

  EXPECT_EQ(read("a", {.etag = ""}), std::nullopt);
}

TEST_F(CachedStoreTest, ALaterRunFindsWhatThisOneKeptOnDisk) {
  open(tier(CacheLevel::kDisk, 10));
  for (const char* key : {"a", "b", "c"}) {
    EXPECT_EQ(read(key, {.next_use = kNever}), std::nullopt);
  }

  store_.reset();
  open(tier(CacheLevel::kRam, 10), tier(CacheLevel::kDisk, 10));

  for (const char* key : {"a", "b", "c"}) {
    EXPECT_EQ(read(key, {}), CacheLevel::kDisk);
    EXPECT_EQ(read(key, {}), CacheLevel::kRam);
  }
  EXPECT_EQ(reads_, 3);
}

TEST_F(CachedStoreTest, ARangeOnItsWayIsAskedForOnce) {
  holds_ = true;
  open(tier(CacheLevel::kRam, 10));
  Reader first;
  Reader second;
  start(first, "a", {});
  start(second, "a", {});
  ASSERT_EQ(held_->held().size(), 1u);

  held_->release_one();
  first.is_done.wait();
  second.is_done.wait();

  EXPECT_EQ(reads_, 1);
  EXPECT_EQ(first.bytes(), bytes_of("a"));
  EXPECT_EQ(second.bytes(), bytes_of("a"));
  EXPECT_EQ(second.had, CacheLevel::kRam);
}

// Two epochs wait for the same bytes: the later one tells the next use. Among
// three records, the one that is used last goes.
TEST_F(CachedStoreTest, OfReadsThatShareBytesTheLastSaysTheNextUse) {
  holds_ = true;
  for (const AccessTime again : {260, 240}) {
    store_.reset();
    open(tier(CacheLevel::kRam, 2));
    Reader first;
    Reader second;
    start(first, "a", {.now = 4, .next_use = 104});
    start(second, "a", {.now = 104, .next_use = again});
    held_->release_one();
    second.is_done.wait();
    for (const char* key : {"b", "c"}) {
      Reader other;
      start(other, key, {.now = 105, .next_use = 250});
      held_->release_one();
      other.is_done.wait();
    }
    store_->drain();

    Reader third;
    start(third, "a", {.now = again, .next_use = 400});
    if (again == 260) held_->release_one();
    third.is_done.wait();

    EXPECT_EQ(third.had.has_value(), again == 240);
  }
}

TEST_F(CachedStoreTest, OfReadsThatShareAHitTheLastSaysTheNextUse) {
  ops_.refuse_maps();  // So that a hit can be held up.
  open(tier(CacheLevel::kRam, 2));
  EXPECT_EQ(read("a", {.now = 4, .next_use = 104}), std::nullopt);
  std::latch may_read{1};
  ops_.set_script([&](FileCall call) {
    if (call == FileCall::kPread) may_read.wait();
    return 0;
  });
  Reader first;
  Reader second;
  start(first, "a", {.now = 104, .next_use = 204});
  start(second, "a", {.now = 204, .next_use = 310});
  may_read.count_down();
  second.is_done.wait();
  ops_.heal();

  for (const char* key : {"b", "c"}) {
    EXPECT_EQ(read(key, {.now = 205, .next_use = 300}), std::nullopt);
  }

  for (const char* key : {"b", "c"}) {
    EXPECT_EQ(read(key, {.now = 300, .next_use = 400}), CacheLevel::kRam);
  }
}

TEST_F(CachedStoreTest, AnErrorIsToldToAllWhoWait) {
  holds_ = true;
  open(tier(CacheLevel::kRam, 10));
  Reader first;
  Reader second;
  start(first, "a", {});
  start(second, "a", {});

  held_->fail_one(Error(ErrorCode::kNotFound, "no such object"));
  first.is_done.wait();
  second.is_done.wait();

  EXPECT_EQ(first.result.error().code(), ErrorCode::kNotFound);
  EXPECT_EQ(second.result.error().code(), ErrorCode::kNotFound);
}

TEST_F(CachedStoreTest, WhoWaitsOutlivesTheStopOfWhoAsked) {
  holds_ = true;
  open(tier(CacheLevel::kRam, 10));
  Reader first;
  Reader second;
  std::stop_source stop;
  start(first, "a", {}, stop.get_token());
  start(second, "a", {});
  stop.request_stop();

  held_->release_one();  // The inner store refuses it: it was stopped.
  first.is_done.wait();
  held_->release_one();
  second.is_done.wait();

  EXPECT_EQ(first.result.error().code(), ErrorCode::kCancelled);
  EXPECT_TRUE(second.result);
  EXPECT_EQ(second.bytes(), bytes_of("a"));
}

// The share of hits that theory gives: Belady over a fresh permutation each
// epoch keeps as much as fits (CoorDL, table of the papers' policies).
TEST_F(CachedStoreTest, HalfTheDataKeptIsHalfTheReadsSaved) {
  constexpr std::uint64_t kSamples = 60;
  for (const char* policy : {"belady", "never_evict"}) {
    store_.reset();
    open(tier(CacheLevel::kRam, kSamples / 2, policy));
    reads_ = 0;
    for (std::uint64_t epoch = 0; epoch < 4; ++epoch) {
      const EpochOrder order(kSamples, {.seed = 1}, nullptr, epoch);
      const EpochOrder next(kSamples, {.seed = 1}, nullptr, epoch + 1);
      const int before = reads_;
      for (std::uint64_t p = 0; p < kSamples; ++p) {
        const SampleId id = order.at(p);
        (void)read(std::to_string(id.value),
                   {.now = epoch * kSamples + p,
                    .next_use = (epoch + 1) * kSamples + next.position_of(id)});
      }
      EXPECT_EQ(reads_ - before, epoch == 0 ? 60 : 30) << policy << epoch;
    }
  }
}

// A job that goes back: among two records, the one goes that is used last by
// the new order, though it was to be used first by the old one.
TEST_F(CachedStoreTest, AnotherPlanSaysAnewWhenWhatIsHeldIsRead) {
  open(tier(CacheLevel::kRam, 2));
  read("a", {.now = 404, .next_use = 504, .sample = 1});
  read("b", {.now = 405, .next_use = 510, .sample = 2});

  store_->begin_plan(
      0, [](SampleId sample) { return sample.value == 1 ? 40 : 20; });
  read("c", {.now = 1, .next_use = 30, .sample = 3});

  EXPECT_EQ(read("b", {.now = 20, .next_use = 120}), CacheLevel::kRam);
  EXPECT_EQ(read("c", {.now = 30, .next_use = 130}), CacheLevel::kRam);
  EXPECT_EQ(read("a", {.now = 40, .next_use = 140}), std::nullopt);
}

TEST_F(CachedStoreTest, WhatIsOfNoKnownSampleStaysUntilTheNewPlanReadsIt) {
  open(tier(CacheLevel::kRam, 1));
  read("piece", {.now = 404, .next_use = 504});

  store_->begin_plan(10, [](SampleId) { return kNever; });
  read("other", {.now = 11, .next_use = 12});

  EXPECT_EQ(read("piece", {.now = 13, .next_use = 113}), CacheLevel::kRam);
  read("other", {.now = 14, .next_use = 15});
  EXPECT_EQ(read("other", {.now = 15, .next_use = 115}), CacheLevel::kRam);
}

TEST_F(CachedStoreTest, AnotherPlanLeavesPoliciesThatGoByThePastAsTheyAre) {
  open(tier(CacheLevel::kRam, 8, "lru"));
  for (const char* key : {"a", "b", "c", "d", "e", "f", "g", "h"}) {
    read(key, {.sample = 1});
  }

  store_->begin_plan(0, [](SampleId) { return 5; });

  for (const char* key : {"a", "b", "c", "d", "e", "f", "g", "h"}) {
    EXPECT_EQ(read(key, {.sample = 1}), CacheLevel::kRam);
    store_->begin_plan(0, [](SampleId) { return 5; });
  }
  read("new", {.sample = 1});
  EXPECT_EQ(read("b", {.sample = 1}), CacheLevel::kRam);
  EXPECT_EQ(read("a", {.sample = 1}), std::nullopt);
}

TEST_F(CachedStoreTest, AFailingDiskCostsTimeAlone) {
  open(tier(CacheLevel::kDisk, 10));
  EXPECT_EQ(read("a", {}), std::nullopt);

  ops_.fail(FileCall::kPread, EIO);
  EXPECT_EQ(read("a", {}), std::nullopt);
  ops_.fail(FileCall::kPwrite, ENOSPC);
  EXPECT_EQ(read("b", {}), std::nullopt);
  EXPECT_EQ(read("b", {}), std::nullopt);
  ops_.heal();

  EXPECT_EQ(metrics_.value(Metric::kCacheTierFailures), 2);
}

TEST_F(CachedStoreTest, AFlippedByteIsAMissAndIsWrittenAnew) {
  open(tier(CacheLevel::kDisk, 10));
  EXPECT_EQ(read("a", {}), std::nullopt);
  const auto file = *std::filesystem::directory_iterator(folder_);
  std::fstream bytes(file.path(),
                     std::ios::binary | std::ios::in | std::ios::out);
  bytes.seekp(-1, std::ios::end);
  bytes.put(static_cast<char>(~bytes_of("a").back())).flush();

  EXPECT_EQ(read("a", {}), std::nullopt);
  EXPECT_EQ(read("a", {}), CacheLevel::kDisk);
  EXPECT_EQ(metrics_.value(Metric::kCacheBadRecords), 1);
}

TEST_F(CachedStoreTest, ASlowDiskDelaysNoReadAndTakesNoMoreMemory) {
  options_.queue_bytes = 2 * kLength;
  open(tier(CacheLevel::kDisk, 100));
  std::latch may_write{1};
  ops_.set_script([&](FileCall call) {
    if (call == FileCall::kPwrite) may_write.wait();
    return 0;
  });
  for (int i = 0; i < 20; ++i) {
    Reader reader;
    start(reader, std::to_string(i), {});
    reader.is_done.wait();  // Would wait for ever behind the disk.
  }
  EXPECT_GE(metrics_.value(Metric::kCacheRefusals), 17);
  Reader again;
  start(again, "0", {});
  again.is_done.wait();
  EXPECT_EQ(again.had, CacheLevel::kDisk);  // A read from the queue.

  may_write.count_down();
  store_->drain();
  ops_.heal();

  EXPECT_EQ(read("0", {}), CacheLevel::kDisk);
}

TEST_F(CachedStoreTest, MemoryKeepsAllThatComesHoweverShortTheQueue) {
  options_.queue_bytes = 1;
  open(tier(CacheLevel::kRam, 100));
  for (int i = 0; i < 100; ++i) {
    Reader reader;
    start(reader, std::to_string(i), {});
    reader.is_done.wait();
  }
  store_->drain();

  EXPECT_EQ(metrics_.value(Metric::kCacheRefusals), 0);
  EXPECT_EQ(metrics_.value(Metric::kCacheInserts), 100);
}

TEST_F(CachedStoreTest, AnEarlierRunsRecordsStayUntilTheyHadTheirTurn) {
  options_.epoch_time = 4;
  open(tier(CacheLevel::kDisk, 3));
  for (const char* key : {"a", "b", "c"}) (void)read(key, {});

  store_.reset();
  open(tier(CacheLevel::kDisk, 3));
  EXPECT_EQ(read("new", {.now = 0, .next_use = 5}), std::nullopt);
  EXPECT_EQ(read("a", {.now = 1, .next_use = 4}), CacheLevel::kDisk);
  EXPECT_EQ(read("b", {.now = 2, .next_use = 6}), CacheLevel::kDisk);
  // An epoch later nobody has asked for "c": it makes room.
  EXPECT_EQ(read("a", {.now = 4, .next_use = 8}), CacheLevel::kDisk);
  EXPECT_EQ(read("new", {.now = 5, .next_use = 9}), std::nullopt);
  EXPECT_EQ(read("new", {.now = 9, .next_use = 13}), CacheLevel::kDisk);
}

}  // namespace
}  // namespace leat
