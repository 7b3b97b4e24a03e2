// Records that callers make, in the tiers beside those of bytes.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <latch>
#include <string>

#include "leat/cache/testing/cached_store_fixture.h"

namespace leat {
namespace {

using testing::bytes_of;
using testing::CachedStoreTest;
using testing::kLength;
using testing::Reader;

constexpr Hash128 kOps{.high = 1, .low = 2};
constexpr std::size_t kMade = 3 * kLength;

class MadeRecordsTest : public CachedStoreTest {
 protected:
  static RecordId id_of(const std::string& key,
                        std::optional<Hash128> ops = kOps) {
    return {.object = {.key = key, .etag = "\"1\""},
            .offset = 0,
            .length_bytes = kLength,
            .made_by = ops};
  }
  static std::string made_of(const std::string& key) {
    const std::string bytes = bytes_of(key);
    return bytes + bytes + bytes;
  }
  void keep(const std::string& key, AccessTime now, AccessTime next_use,
            std::optional<Hash128> ops = kOps) {
    const std::string made = ops ? made_of(key) : bytes_of(key);
    store_->keep(id_of(key, ops), as_bytes(made),
                 {.now = now, .next_use = next_use});
    store_->drain();
  }
  /// The tier that had it; bytes that are found are always right.
  std::optional<CacheLevel> find(const std::string& key, AccessTime now = 0,
                                 AccessTime next_use = 1000) {
    const auto bytes = store_->record_bytes(id_of(key));
    if (!bytes) return std::nullopt;
    EXPECT_EQ(*bytes, kMade);
    Buffer into(*bytes);
    std::optional<CacheLevel> had;
    std::latch is_done{1};
    store_->find({.id = id_of(key),
                  .into = into.span(),
                  .hint = {.now = now, .next_use = next_use}},
                 {}, [&](std::optional<CacheLevel> level) {
                   had = level;
                   is_done.count_down();
                 });
    is_done.wait();
    if (had) {
      EXPECT_EQ(as_text(into.span()), made_of(key));
    }
    store_->drain();
    return had;
  }
};

TEST_F(MadeRecordsTest, AreFoundByWhatTheyWereMadeOfAndHow) {
  open(tier(CacheLevel::kRam, 10));
  EXPECT_EQ(find("a"), std::nullopt);
  keep("a", 0, 1000);

  EXPECT_EQ(find("a"), CacheLevel::kRam);
  EXPECT_EQ(metrics_.value(Metric::kCacheRamHits), 1);
  EXPECT_EQ(metrics_.value(Metric::kCacheDecodedHits), 1);
  EXPECT_FALSE(store_->record_bytes(id_of("a", Hash128{.high = 1, .low = 3})));
  EXPECT_FALSE(store_->record_bytes(id_of("a", std::nullopt)));
  EXPECT_FALSE(store_->record_bytes(id_of("b")));
  EXPECT_EQ(read("a", {}), std::nullopt);  // Its bytes are another record.
  EXPECT_EQ(metrics_.value(Metric::kCacheDecodedHits), 1);
}

TEST_F(MadeRecordsTest, TakeThePlaceOfTheBytes) {
  open(tier(CacheLevel::kRam, 10));
  EXPECT_EQ(read("a", {}), std::nullopt);
  EXPECT_TRUE(store_->record_bytes(id_of("a", std::nullopt)));

  keep("a", 1, 1000);

  EXPECT_FALSE(store_->record_bytes(id_of("a", std::nullopt)));
  EXPECT_EQ(find("a"), CacheLevel::kRam);
  EXPECT_EQ(metrics_.value(Metric::kCacheDrops), 1);
}

// For a record of another process or of an earlier run, nobody would ever read
// the bytes again, and a record that is never used is never dropped.
TEST_F(MadeRecordsTest, BytesGoWhenOneIsFoundBesideThem) {
  open(tier(CacheLevel::kDisk, 10));
  keep("a", 1, 1000);
  keep("a", 1, 1000, std::nullopt);
  ASSERT_TRUE(store_->record_bytes(id_of("a", std::nullopt)));

  EXPECT_EQ(find("a"), CacheLevel::kDisk);

  EXPECT_FALSE(store_->record_bytes(id_of("a", std::nullopt)));
}

TEST_F(MadeRecordsTest, ARangeThatIsNotOfferedIsNotKept) {
  open(tier(CacheLevel::kRam, 10));
  for (int i = 0; i < 2; ++i) {
    Reader reader;
    store_->read(
        {.object = {.key = "a", .etag = "\"1\""},
         .into = reader.buffer.span(),
         .observer = &reader,
         .hint = ReadHint{.now = 0, .next_use = 9, .is_offered = false}},
        {}, reader.done());
    reader.is_done.wait();
    store_->drain();
    EXPECT_EQ(reader.had, std::nullopt);
  }

  EXPECT_EQ(reads_, 2);
  keep("a", 0, 9, std::nullopt);
  EXPECT_EQ(read("a", {}), CacheLevel::kRam);
}

// Belady goes by the next use, in either form, and by the room of a record.
TEST_F(MadeRecordsTest, ArePushedOutByTheirNextUseAndByTheirSize) {
  static_assert(record_cost(kMade) == record_cost(kLength),
                "both take a page here");
  open(tier(CacheLevel::kRam, 2));
  keep("late", 0, 300);
  EXPECT_EQ(read("soon", {.now = 1, .next_use = 100}), std::nullopt);
  keep("sooner", 2, 200);

  EXPECT_FALSE(store_->record_bytes(id_of("late")));
  EXPECT_EQ(find("sooner", 3, 200), CacheLevel::kRam);
  EXPECT_EQ(read("soon", {.now = 4, .next_use = 100}), CacheLevel::kRam);
  keep("latest", 5, 400);
  EXPECT_FALSE(store_->record_bytes(id_of("latest")));
}

// While "late" was made the next epoch asked for it, in vain: it is not wanted
// before the epoch after, and goes first.
TEST_F(MadeRecordsTest, AUseThatWasAskedForMeanwhileIsOver) {
  options_.epoch_time = 100;
  open(tier(CacheLevel::kRam, 2));
  EXPECT_EQ(read("soon", {.now = 105, .next_use = 190}), std::nullopt);

  keep("late", 4, 104);
  keep("sooner", 5, 110);

  EXPECT_FALSE(store_->record_bytes(id_of("late")));
  EXPECT_EQ(find("sooner", 110, 195), CacheLevel::kRam);
  EXPECT_EQ(read("soon", {.now = 190, .next_use = 200}), CacheLevel::kRam);
}

// The read of the next epoch, which found the bytes, knows better.
TEST_F(MadeRecordsTest, TheUseAfterIsWhatWasToldOfTheBytes) {
  options_.epoch_time = 100;
  open(tier(CacheLevel::kRam, 2));
  EXPECT_EQ(read("late", {.now = 4, .next_use = 104}), std::nullopt);
  EXPECT_EQ(read("late", {.now = 104, .next_use = 299}), CacheLevel::kRam);
  EXPECT_EQ(read("soon", {.now = 105, .next_use = 250}), std::nullopt);

  keep("late", 4, 104);  // Guessed, it were 204.
  keep("sooner", 5, 240);

  EXPECT_FALSE(store_->record_bytes(id_of("late")));
  EXPECT_EQ(find("sooner", 240, 395), CacheLevel::kRam);
  EXPECT_EQ(read("soon", {.now = 250, .next_use = 400}), CacheLevel::kRam);
}

// Both epochs have made it: the later one says when it is used again, whichever
// comes first.
TEST_F(MadeRecordsTest, OfTwoThatMadeItTheLaterSaysTheNextUse) {
  options_.epoch_time = 100;
  for (const bool later_first : {false, true}) {
    store_.reset();
    open(tier(CacheLevel::kRam, 2));
    EXPECT_EQ(read("soon", {.now = 105, .next_use = 250}), std::nullopt);
    if (later_first) keep("twice", 104, 280);
    keep("twice", 4, 104);
    if (!later_first) keep("twice", 104, 280);

    keep("between", 106, 230);

    EXPECT_FALSE(store_->record_bytes(id_of("twice"))) << later_first;
    EXPECT_TRUE(store_->record_bytes(id_of("soon", std::nullopt)));
    EXPECT_EQ(find("between", 230, 396), CacheLevel::kRam);
  }
}

// A job that goes back to an earlier epoch: times ahead of it are not over.
TEST_F(MadeRecordsTest, AnEarlierEpochBeginsAnotherPlan) {
  options_.epoch_time = 100;
  open(tier(CacheLevel::kRam, 2));
  EXPECT_EQ(read("soon", {.now = 905, .next_use = 990}), std::nullopt);
  EXPECT_EQ(read("soon", {.now = 5, .next_use = 150}), CacheLevel::kRam);

  keep("sooner", 6, 140);
  keep("between", 7, 145);

  EXPECT_FALSE(store_->record_bytes(id_of("soon", std::nullopt)));
  EXPECT_EQ(find("sooner", 140, 230), CacheLevel::kRam);
  EXPECT_EQ(find("between", 145, 250), CacheLevel::kRam);
}

TEST_F(MadeRecordsTest, ALaterRunFindsThemOnDisk) {
  open(tier(CacheLevel::kDisk, 10));
  keep("a", 0, kNever);
  store_.reset();
  open(tier(CacheLevel::kRam, 10), tier(CacheLevel::kDisk, 10));

  EXPECT_EQ(find("a"), CacheLevel::kDisk);
  EXPECT_EQ(find("a"), CacheLevel::kRam);
}

TEST_F(MadeRecordsTest, AFlippedByteIsAMissAndIsWrittenAnew) {
  open(tier(CacheLevel::kDisk, 10));
  keep("a", 0, 1000);
  const auto file = *std::filesystem::directory_iterator(folder_);
  std::fstream bytes(file.path(),
                     std::ios::binary | std::ios::in | std::ios::out);
  bytes.seekp(-1, std::ios::end);
  bytes.put(static_cast<char>(~made_of("a").back())).flush();
  ASSERT_TRUE(store_->record_bytes(id_of("a")));

  EXPECT_EQ(find("a"), std::nullopt);

  EXPECT_EQ(metrics_.value(Metric::kCacheBadRecords), 1);
  EXPECT_EQ(metrics_.value(Metric::kCacheDecodedHits), 0);
  EXPECT_FALSE(store_->record_bytes(id_of("a")));
  keep("a", 0, 1000);
  EXPECT_EQ(find("a"), CacheLevel::kDisk);
}

// Nothing of it waits in a queue, however short that is.
TEST_F(MadeRecordsTest, InMemoryTheyAreWrittenAtOnce) {
  options_.queue_bytes = 1;
  open(tier(CacheLevel::kRam, 50));
  for (int i = 0; i < 50; ++i) {
    const std::string key = std::to_string(i);
    const std::string made = made_of(key);
    store_->keep(id_of(key), as_bytes(made), {.now = 0, .next_use = 1000});
    EXPECT_EQ(metrics_.value(Metric::kCacheInserts), i + 1);
  }

  EXPECT_EQ(metrics_.value(Metric::kCacheRefusals), 0);
  EXPECT_EQ(find("0"), CacheLevel::kRam);
}

TEST_F(MadeRecordsTest, ALookUpThatIsStoppedFindsNothing) {
  open(tier(CacheLevel::kRam, 10));
  keep("a", 0, 1000);
  Buffer into(kMade);
  std::stop_source stop;
  stop.request_stop();
  std::latch is_done{1};
  store_->find({.id = id_of("a"), .into = into.span(), .hint = {}},
               stop.get_token(), [&](std::optional<CacheLevel> level) {
                 EXPECT_EQ(level, std::nullopt);
                 is_done.count_down();
               });
  is_done.wait();
}

}  // namespace
}  // namespace leat
