// Tests of the records that a store keeps when it shares its tiers with another
// job.

#include <gtest/gtest.h>

#include <latch>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "leat/cache/cached_store.h"
#include "leat/cache/testing/cached_store_fixture.h"

namespace leat {
namespace {

using testing::CountingStore;
using testing::kLength;
using testing::Reader;

constexpr std::uint64_t kBoardSamples = 100;

class SharedStoreTest : public testing::CachedStoreTest {
 protected:
  /// Room for two records, and another job that has yet to read sample 0.
  SharedStoreTest() {
    other_ = *JobBoard::open(folder_, {}, kBoardSamples);
    std::vector<ReadTurn> turns(kBoardSamples);
    turns[0] = 1;
    other_->begin_epoch({.turns = turns});
    options_.catch_up_every = std::chrono::milliseconds(1);
    open_shared(/*keeps_bytes=*/false);
  }
  ~SharedStoreTest() override { store_.reset(); }

  void open_shared(bool keeps_bytes) {
    store_.reset();
    std::vector<CacheTier> tiers;
    tiers.push_back(tier(CacheLevel::kRam, 2));
    store_ = std::make_unique<CachedStore>(
        std::make_unique<CountingStore>(reads_), std::move(tiers), options_,
        &metrics_,
        CacheSharing{.claims = *RecordClaims::open(folder_),
                     .board = *JobBoard::open(folder_, {}, kBoardSamples),
                     .keeps_bytes = keeps_bytes});
  }

  void read_sample(std::uint64_t sample, AccessTime next_use) {
    Reader reader;
    store_->read(
        {.object = {.key = std::to_string(sample), .etag = "e"},
         .into = reader.buffer.span(),
         .observer = &reader,
         .hint =
             ReadHint{.now = now_++, .next_use = next_use, .sample = sample}},
        {}, reader.done());
    reader.is_done.wait();
    EXPECT_TRUE(reader.result);
    store_->drain();
  }
  static RecordId id_of(std::uint64_t sample, std::optional<Hash128> made_by) {
    return {.object = {.key = std::to_string(sample), .etag = "e"},
            .length_bytes = kLength,
            .made_by = made_by};
  }
  bool holds(std::uint64_t sample,
             std::optional<Hash128> made_by = std::nullopt) const {
    return store_->record_bytes(id_of(sample, made_by)).has_value();
  }
  /// Keeps what was made of it.
  void keep(std::uint64_t sample, AccessTime next_use) {
    store_->keep(id_of(sample, kOps), as_bytes(std::string(kLength, 'm')),
                 {.now = now_++, .next_use = next_use, .sample = sample});
  }
  /// When the other job reads them; all others never.
  void other_reads(std::uint64_t first, ReadTurn first_turn,
                   std::uint64_t second, ReadTurn second_turn) {
    std::vector<ReadTurn> turns(kBoardSamples);
    turns[first] = first_turn;
    turns[second] = second_turn;
    other_->begin_epoch({.turns = turns});
  }

  static constexpr Hash128 kOps{.high = 1, .low = 2};

  AccessTime now_ = 1;
  std::unique_ptr<JobBoard> other_;
};

TEST_F(SharedStoreTest, WhatAnotherJobHasYetToReadGoesLast) {
  read_sample(0, 9000);  // By our own plan the first to go.
  read_sample(1, 50);    // In this epoch still.

  read_sample(2, 40);

  EXPECT_TRUE(holds(0));
  EXPECT_FALSE(holds(1));
  EXPECT_TRUE(holds(2));
}

/// Another job's, over the same folder.
class TwoStoresTest : public SharedStoreTest {
 protected:
  TwoStoresTest() {
    std::vector<CacheTier> tiers;
    tiers.push_back(tier(CacheLevel::kRam, 2));
    others_ = std::make_unique<CachedStore>(
        std::make_unique<CountingStore>(reads_), std::move(tiers), options_,
        nullptr,
        CacheSharing{.claims = *RecordClaims::open(folder_),
                     .board = *JobBoard::open(folder_, {}, kBoardSamples),
                     .keeps_bytes = false});
  }
  ~TwoStoresTest() override { others_.reset(); }

  void read(Reader& reader) {
    store_->read({.object = {.key = "7", .etag = "e"},
                  .into = reader.buffer.span(),
                  .observer = &reader,
                  .hint = ReadHint{.now = 1, .next_use = 9, .sample = 7}},
                 {}, reader.done());
  }

  std::unique_ptr<CachedStore> others_;
};

TEST_F(TwoStoresTest, AReadTellsThatAnotherJobWasToBringIt) {
  std::latch is_claimed(1);
  others_->take_turn(id_of(7, {}), {}, [&](bool is_there) {
    EXPECT_FALSE(is_there);
    is_claimed.count_down();
  });
  is_claimed.wait();
  Reader reader;
  read(reader);
  EXPECT_FALSE(reader.is_done.try_wait());

  others_->end_turn(id_of(7, {}));

  reader.is_done.wait();
  EXPECT_TRUE(reader.result);
  EXPECT_TRUE(reader.awaited);
}

TEST_F(TwoStoresTest, AReadThatNobodyElseWantsHasNoOtherJobToBlame) {
  Reader reader;
  read(reader);
  reader.is_done.wait();

  EXPECT_TRUE(reader.result);
  EXPECT_FALSE(reader.awaited);
}

TEST_F(SharedStoreTest, WhatAnotherJobReadsLaterGoesFirst) {
  other_reads(0, 90, 1, 10);
  read_sample(0, 9000);
  read_sample(1, 9000);

  read_sample(2, 50);

  EXPECT_FALSE(holds(0));
  EXPECT_TRUE(holds(1));
  EXPECT_TRUE(holds(2));
}

// By itself a record would be later by the number of samples that others have
// read since; a record that all of them have read waits for the next epoch.
TEST_F(SharedStoreTest, TheOthersOrderIsFollowedAsTheyGoOn) {
  other_reads(0, 1, 1, 60);
  read_sample(0, 9000);
  read_sample(1, 9000);

  other_->used(0, {0}, 199);

  int tries = 0;
  for (; holds(0) && tries < 100'000; ++tries) read_sample(2, 90);
  EXPECT_FALSE(holds(0)) << tries;
  EXPECT_TRUE(holds(1));
}

TEST_F(SharedStoreTest, BytesPushOutWhatIsMadeAndNeverTheOtherWayRound) {
  open_shared(/*keeps_bytes=*/true);
  other_reads(0, 1, 1, 2);
  keep(0, 2);
  keep(1, 3);
  ASSERT_TRUE(holds(0, kOps) && holds(1, kOps));

  read_sample(5, 9000);
  EXPECT_TRUE(holds(5));
  read_sample(6, 9000);
  keep(0, 2);

  EXPECT_TRUE(holds(5) && holds(6));
  EXPECT_FALSE(holds(0, kOps) || holds(1, kOps));
}

TEST_F(SharedStoreTest, OnceTheOtherHasReadItOurOwnNextUseCounts) {
  read_sample(0, 9000);
  read_sample(1, 5000);
  ASSERT_TRUE(holds(0));

  other_->used(0, {0}, 0);

  // It is seen within milliseconds: the next record takes its place.
  int tries = 0;
  for (; holds(0) && tries < 100'000; ++tries) {
    read_sample(2 + static_cast<std::uint64_t>(tries) % 90,
                4000 - static_cast<AccessTime>(std::min(tries, 3000)));
  }
  EXPECT_FALSE(holds(0)) << tries;
}

TEST_F(SharedStoreTest, WhatThisJobNeverReadsAgainStaysWhileThereIsRoom) {
  read_sample(5, kNever);
  EXPECT_TRUE(holds(5));

  read_sample(6, 5000);
  read_sample(7, 4000);

  EXPECT_FALSE(holds(5));
}

}  // namespace
}  // namespace leat
