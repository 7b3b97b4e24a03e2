#include "leat/cache/cached_store.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <latch>
#include <string>
#include <vector>

#include "leat/base/units.h"
#include "leat/cache/testing/faulty_file_ops.h"
#include "leat/plan/order.h"
#include "leat/store/testing/fake_store.h"
#include "leat/store/testing/faulty_store.h"

namespace leat {
namespace {

using testing::FaultyFileOps;
using testing::FileCall;
using testing::HeldStore;

constexpr std::size_t kLength = 1000;

/// Of its key: what any read of that object gives.
std::string bytes_of(const std::string& key) {
  std::string bytes(kLength, '\0');
  for (std::size_t i = 0; i < kLength; ++i) {
    bytes[i] = static_cast<char>(mix64(i + xxh3_64(as_bytes(key))));
  }
  return bytes;
}

/// Answers every read before read() returns, and counts them.
class CountingStore final : public testing::FakeStore {
 public:
  explicit CountingStore(std::atomic<int>& reads) : reads_(reads) {}
  void read(ReadRequest request, std::stop_token stop, ReadDone done) override {
    if (stop.stop_requested()) {
      return done(Error(ErrorCode::kCancelled, "cancelled"));
    }
    ++reads_;
    const std::string bytes = bytes_of(request.object.key);
    std::copy_n(as_bytes(bytes).begin(), request.into.size(),
                request.into.begin());
    done({});
  }
  std::string url_of(std::string_view key) const override {
    return "mem://" + std::string(key);
  }

 private:
  std::atomic<int>& reads_;
};

/// Waits for one read, and hears where its bytes came from.
class Reader final : public ReadObserver {
 public:
  void backs_off(TimePoint, TimePoint) override {}
  void cache_looked(TimePoint from, TimePoint until) override {
    looked = until >= from;
  }
  void cache_had(CacheLevel level, std::uint64_t bytes) override {
    had = level;
    EXPECT_EQ(bytes, kLength);
  }
  ReadDone done() {
    return [this](Result<void> answered) {
      result = std::move(answered);
      is_done.count_down();
    };
  }
  std::string bytes() { return std::string(as_text(buffer.span())); }

  Buffer buffer{kLength};
  Result<void> result;
  bool looked = false;
  std::optional<CacheLevel> had;
  std::latch is_done{1};
};

struct Asked {
  std::string etag = "\"1\"";
  AccessTime now = 0;
  AccessTime next_use = 1000;
};

class CachedStoreTest : public ::testing::Test {
 protected:
  CachedStoreTest() {
    std::string name = ::testing::TempDir() + "leat-cached-XXXXXX";
    folder_ = ::mkdtemp(name.data());
  }
  ~CachedStoreTest() override {
    store_.reset();
    std::filesystem::remove_all(folder_);
  }

  CacheTier tier(CacheLevel level, std::uint64_t records,
                 const std::string& policy = "belady") {
    const std::uint64_t limit = records * record_cost(kLength);
    auto files = level == CacheLevel::kRam
                     ? open_segment_memory(ops_)
                     : *open_segment_folder(folder_, ops_);
    return {
        .level = level,
        .tier = *SegmentTier::open(
            std::move(files),
            {.limit_bytes = limit, .segment_bytes = 64 * kKiB, .source = 1},
            ops_, clock_, &metrics_),
        .policy = std::make_unique<RecordPolicy>(
            *make_cache_policy(
                {.name = policy, .samples = records + 1, .capacity = limit}),
            records + 1),
        .is_lasting = level == CacheLevel::kDisk};
  }
  /// REQUIRES: no store is open, or it would still hold the folder's segments.
  template <class... Tiers>
  void open(Tiers... tiers) {
    std::vector<CacheTier> all;
    (all.push_back(std::move(tiers)), ...);
    auto held =
        std::make_unique<HeldStore>(std::make_unique<CountingStore>(reads_));
    held_ = held.get();
    store_ = std::make_unique<CachedStore>(
        holds_ ? std::unique_ptr<Store>(std::move(held))
               : std::make_unique<CountingStore>(reads_),
        std::move(all), options_, &metrics_);
  }
  void start(Reader& reader, const std::string& key, const Asked& asked,
             std::stop_token stop = {}) {
    store_->read(
        {.object = {.key = key, .etag = asked.etag},
         .into = reader.buffer.span(),
         .observer = &reader,
         .hint = ReadHint{.now = asked.now, .next_use = asked.next_use}},
        std::move(stop), reader.done());
  }
  /// Where the bytes came from; they are always right.
  std::optional<CacheLevel> read(const std::string& key, const Asked& asked) {
    Reader reader;
    start(reader, key, asked);
    reader.is_done.wait();
    EXPECT_TRUE(reader.result) << reader.result.error().message();
    EXPECT_EQ(reader.bytes(), bytes_of(key));
    store_->drain();
    return reader.had;
  }

  std::string folder_;
  FaultyFileOps ops_;
  SteadyClock clock_;
  Metrics metrics_;
  CachedStoreOptions options_{.place = "", .samples = 100};
  std::atomic<int> reads_ = 0;
  bool holds_ = false;
  HeldStore* held_ = nullptr;
  std::unique_ptr<CachedStore> store_;
};

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
  EXPECT_EQ(again.had, CacheLevel::kDisk);  // Of the queue.

  may_write.count_down();
  store_->drain();
  ops_.heal();

  EXPECT_EQ(read("0", {}), CacheLevel::kDisk);
}

TEST_F(CachedStoreTest, AnEarlierRunsRecordsStayUntilTheyHadTheirTurn) {
  options_.samples = 4;
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
