// What a store keeps that shares its tiers with another job.

#include <gtest/gtest.h>

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

constexpr std::uint64_t kSamples = 100;

class SharedStoreTest : public testing::CachedStoreTest {
 protected:
  /// Room for two records, and another job that has yet to read sample 0.
  SharedStoreTest() {
    other_ = *JobBoard::open(folder_, {}, kSamples);
    std::vector<bool> wanted(kSamples);
    wanted[0] = true;
    other_->begin_epoch(0, wanted);
    std::vector<CacheTier> tiers;
    tiers.push_back(tier(CacheLevel::kRam, 2));
    options_.catch_up_every = std::chrono::milliseconds(1);
    store_ = std::make_unique<CachedStore>(
        std::make_unique<CountingStore>(reads_), std::move(tiers), options_,
        &metrics_,
        CacheSharing{.claims = *RecordClaims::open(folder_),
                     .board = *JobBoard::open(folder_, {}, kSamples)});
  }
  ~SharedStoreTest() override { store_.reset(); }

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
  bool holds(std::uint64_t sample) const {
    return store_
        ->record_bytes({.object = {.key = std::to_string(sample), .etag = "e"},
                        .length_bytes = kLength})
        .has_value();
  }

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

TEST_F(SharedStoreTest, OnceTheOtherHasReadItOurOwnNextUseCounts) {
  read_sample(0, 9000);
  read_sample(1, 5000);
  ASSERT_TRUE(holds(0));

  other_->used(0, {0});

  // It is seen within milliseconds: what comes then takes its place.
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
