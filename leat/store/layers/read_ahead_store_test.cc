#include "leat/store/layers/read_ahead_store.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "leat/store/testing/fake_store.h"
#include "leat/store/testing/faulty_store.h"

namespace leat::testing {
namespace {

using Places = std::vector<AheadPlace>;

/// Objects of given sizes: byte i of object n is a function of both. Notes what
/// is asked for.
class NotingStore : public testing::FakeStore {
 public:
  void read(ReadRequest request, std::stop_token stop, ReadDone done) override {
    if (stop.stop_requested()) {
      return done(Error(ErrorCode::kCancelled, "cancelled"));
    }
    {
      const MutexLock lock(mutex_);
      asked_[{request.object.key, request.offset}] += request.into.size();
      bytes_ += request.into.size();
    }
    for (std::size_t i = 0; i < request.into.size(); ++i) {
      request.into[i] = byte_of(request.object.key, request.offset + i);
    }
    done({});
  }

  static std::byte byte_of(const std::string& key, std::uint64_t offset) {
    return static_cast<std::byte>(static_cast<std::uint64_t>(key[0]) * 31 +
                                  offset * 7);
  }
  std::size_t reads() const {
    const MutexLock lock(mutex_);
    return asked_.size();
  }
  std::uint64_t bytes() const {
    const MutexLock lock(mutex_);
    return bytes_;
  }

 private:
  mutable Mutex mutex_;
  std::map<std::pair<std::string, std::uint64_t>, std::uint64_t> asked_
      LEAT_GUARDED_BY(mutex_);
  std::uint64_t bytes_ LEAT_GUARDED_BY(mutex_) = 0;
};

/// Objects "a" of 25 bytes, "b" of none, "c" of 9, "d" of 40; chunks of 10.
class ReadAheadStoreTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kBytes = 25 + 9 + 40;

  void open(std::uint64_t most_bytes, std::function<bool()> is_awaited = {}) {
    ReadAheadOptions with = options(most_bytes);
    with.is_awaited = std::move(is_awaited);
    auto noting = std::make_unique<NotingStore>();
    noting_ = noting.get();
    ahead_.emplace(std::move(noting), std::move(with));
  }
  static ReadAheadOptions options(std::uint64_t most_bytes) {
    return {.objects = {{.key = "a", .size_bytes = 25},
                        {.key = "b", .size_bytes = 0},
                        {.key = "c", .size_bytes = 9},
                        {.key = "d", .size_bytes = 40}},
            .most_bytes = most_bytes,
            .chunk_bytes = 10};
  }

  static void expect_bytes(const std::string& key, std::uint64_t offset,
                           std::span<const std::byte> bytes) {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      ASSERT_EQ(bytes[i], NotingStore::byte_of(key, offset + i)) << key << i;
    }
  }
  void scan(std::size_t object, const std::string& key, std::uint64_t offset,
            std::size_t size) {
    std::vector<std::byte> into(size);
    ASSERT_TRUE(ahead_->scan({object, offset}, into, {}));
    expect_bytes(key, offset, into);
  }
  void read(const std::string& key, std::uint64_t offset, std::size_t size) {
    std::vector<std::byte> into(size);
    std::optional<Result<void>> answer;
    ahead_->read({.object = {.key = key}, .offset = offset, .into = into}, {},
                 [&](Result<void> result) { answer = std::move(result); });
    ASSERT_TRUE(answer.has_value());
    ASSERT_TRUE(answer->has_value());
    expect_bytes(key, offset, into);
  }

  NotingStore* noting_ = nullptr;  // In `ahead_`.
  std::optional<ReadAheadStore> ahead_;
};

TEST_F(ReadAheadStoreTest, ObjectsOfOthersAreNotReadAhead) {
  ReadAheadOptions with = options(1000);
  with.is_skipped = {true, false, false, false};
  auto noting = std::make_unique<NotingStore>();
  noting_ = noting.get();
  ahead_.emplace(std::move(noting), std::move(with));

  EXPECT_EQ(noting_->bytes(), 9 + 40u);
  scan(3, "d", 0, 40);
  read("d", 0, 40);
  EXPECT_EQ(noting_->bytes(), 9 + 40u);
  read("a", 5, 10);  // Another rank scans it.
  EXPECT_EQ(noting_->bytes(), 9 + 40u + 10);
}

TEST_F(ReadAheadStoreTest, BothReadersOfAByteCostOneRead) {
  open(1000);

  scan(0, "a", 0, 25);
  scan(2, "c", 3, 6);
  scan(3, "d", 5, 30);
  read("a", 3, 20);
  read("d", 0, 40);

  // floor(25 / 10) + 1 + 40 / 10: none for the empty one.
  EXPECT_EQ(noting_->reads(), 2u + 1 + 4);
  EXPECT_EQ(noting_->bytes(), kBytes);
  EXPECT_EQ(ahead_->counts().sent, 7u);
  EXPECT_EQ(ahead_->counts().sent_bytes, kBytes);
  EXPECT_EQ(ahead_->counts().answered, 2u);
  EXPECT_EQ(ahead_->counts().answered_bytes, 60u);
}

TEST_F(ReadAheadStoreTest, HoldsNoMoreThanItMayAndGoesOnAsBytesAreLetGo) {
  open(34);  // "a" and "c", and not yet "d".

  EXPECT_EQ(noting_->bytes(), 34u);
  EXPECT_EQ(ahead_->held_bytes(), 34u);
  ahead_->let_go_before({0, 13});  // The first of two chunks of "a".
  EXPECT_EQ(ahead_->held_bytes(), 34u - 13 + 10);
  read("a", 20, 5);
  EXPECT_EQ(ahead_->counts().answered, 1u);
  read("a", 0, 5);  // Asked for again.
  EXPECT_EQ(ahead_->counts().answered, 1u);
}

TEST_F(ReadAheadStoreTest, AMarkIsPassedByReadingBehindIt) {
  open(1000);
  ahead_->set_marks({{0, 0}, {2, 4}, {3, 12}});
  EXPECT_EQ(ahead_->held_bytes(), kBytes);

  read("a", 20, 5);
  EXPECT_EQ(ahead_->held_bytes(), kBytes);
  read("c", 4, 2);  // Its chunk begins before the mark, and stays.
  EXPECT_EQ(ahead_->held_bytes(), kBytes - 25);
  read("d", 20, 5);
  EXPECT_EQ(ahead_->held_bytes(), kBytes - 25 - 9 - 10);
}

TEST_F(ReadAheadStoreTest, AScanWaitsForMemoryUnlessThatIsInVain) {
  open(34);
  std::jthread scanner([&] { scan(3, "d", 0, 15); });  // Behind what is held.

  ahead_->hurry(true);
  scanner.join();

  // The reads that wanted it alone came in two parts of two chunks; both are
  // passed by.
  EXPECT_EQ(noting_->bytes(), 34u + 15);
  ahead_->hurry(false);
  ahead_->let_go_before({3, 0});
  EXPECT_EQ(ahead_->held_bytes(), 20u);
  scan(3, "d", 20, 20);
  EXPECT_EQ(noting_->bytes(), 34u + 15 + 20);
}

TEST_F(ReadAheadStoreTest, AScanThatOthersWaitForWaitsForNoMemory) {
  std::atomic<int> asked = 0;
  // Not yet, when it is asked first.
  open(34, [&] { return ++asked > 1; });

  scan(3, "d", 0, 15);

  EXPECT_EQ(asked, 3);  // One read for each of two chunks.
  EXPECT_EQ(noting_->bytes(), 34u + 10 + 5);
  EXPECT_EQ(ahead_->held_bytes(), 34u);
  scan(2, "c", 0, 9);  // Chunks that are held need no memory.
  EXPECT_EQ(asked, 3);
}

TEST_F(ReadAheadStoreTest, AScanGoesOnOnceThereIsRoom) {
  open(34);
  std::jthread scanner([&] { scan(3, "d", 0, 10); });

  ahead_->let_go_before({2, 0});
  scanner.join();

  EXPECT_EQ(noting_->bytes(), 34u + 20);  // Chunks, not what was wanted.
}

TEST_F(ReadAheadStoreTest, WithoutRoomForAChunkEveryoneReadsForHimself) {
  open(5);

  scan(0, "a", 3, 4);
  read("a", 0, 25);

  EXPECT_EQ(noting_->bytes(), 29u);
}

TEST_F(ReadAheadStoreTest, AfterStopHoldingEverythingIsPassedOn) {
  open(1000);
  ahead_->stop_holding();

  EXPECT_EQ(ahead_->held_bytes(), 0u);
  read("a", 0, 25);
  scan(3, "d", 0, 10);

  EXPECT_EQ(noting_->bytes(), kBytes + 35);
}

TEST_F(ReadAheadStoreTest, OtherObjectsAndVersionsArePassedOn) {
  open(1000);

  read("x", 0, 4);
  std::vector<std::byte> into(4);
  ahead_->read({.object = {.key = "a", .etag = "\"2\""}, .into = into}, {},
               [](const Result<void>& result) { EXPECT_TRUE(result); });

  EXPECT_EQ(noting_->bytes(), kBytes + 8);
}

/// Reads that come late.
class LateChunksTest : public ::testing::Test {
 protected:
  HeldStore* held_ = nullptr;  // In `ahead_`.
  std::optional<ReadAheadStore> ahead_;
  ReadAheadOptions options_{.objects = {{.key = "a", .size_bytes = 25}},
                            .most_bytes = 1000,
                            .chunk_bytes = 10};
  std::vector<std::byte> into_ = std::vector<std::byte>(25);
  int answered_ = 0;

  void open() {
    auto held = std::make_unique<HeldStore>(std::make_unique<NotingStore>());
    held_ = held.get();
    ahead_.emplace(std::move(held), options_);
  }
  void read(std::stop_token stop = {}) {
    ahead_->read(
        {.object = {.key = "a"}, .into = into_}, std::move(stop),
        [this](const Result<void>& result) { answered_ += result ? 1 : -1; });
  }
};

TEST_F(LateChunksTest, AReadWaitsForAllItsChunks) {
  open();
  read();

  held_->release_one();
  EXPECT_EQ(answered_, 0);
  held_->release_one();
  EXPECT_EQ(answered_, 1);
  EXPECT_EQ(into_[24], NotingStore::byte_of("a", 24));
}

TEST_F(LateChunksTest, AsManyAreInFlightAsHaveCome) {
  options_.objects[0].size_bytes = 100;
  options_.first_in_flight = 2;
  open();

  std::vector<std::size_t> in_flight;
  for (int i = 0; i < 10; ++i) {
    in_flight.push_back(held_->held().size());
    held_->release_one();
  }

  EXPECT_EQ(in_flight,
            (std::vector<std::size_t>{2, 2, 2, 3, 4, 5, 4, 3, 2, 1}));
}

TEST_F(LateChunksTest, WhatIsLetGoMeanwhileComesAllTheSame) {
  open();
  read();
  ahead_->let_go_before({1, 0});

  held_->release_one();
  held_->release_one();

  EXPECT_EQ(answered_, 1);
}

TEST_F(LateChunksTest, AChunkThatFailsIsReadByWhoWantsIt) {
  open();
  read();

  held_->fail_one(Error(ErrorCode::kUnavailable, "down"));
  held_->release_one();
  EXPECT_EQ(answered_, 0);
  held_->release_one();  // Its own.

  EXPECT_EQ(answered_, 1);
  EXPECT_EQ(ahead_->counts().answered, 0u);
}

TEST_F(LateChunksTest, DestructionWaitsForWhatIsComing) {
  open();
  std::jthread ending([&] { ahead_.reset(); });

  held_->release_one();
  held_->release_one();
}

}  // namespace
}  // namespace leat::testing
