#include "leat/cache/tier_writer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "leat/base/buffer.h"
#include "leat/base/units.h"
#include "leat/cache/testing/faulty_file_ops.h"

namespace leat {
namespace {

constexpr std::size_t kSmall = 100;

RecordKey numbered_key(std::uint64_t n) { return {.high = n, .low = ~n}; }

/// Tiers in memory, over writes that are queued before the writer starts.
class TierWriterTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kCost = record_cost(kSmall);
  static constexpr std::uint64_t kFiller = 1'000'000;  ///< No plan has it.

  void add_tier(CacheLevel level, std::uint64_t records) {
    const std::uint64_t limit = records * kCost;
    tiers_.push_back(
        {.level = level,
         .tier = *SegmentTier::open(
             open_segment_memory(ops_),
             {.limit_bytes = limit, .segment_bytes = 64 * kKiB}, ops_, clock_,
             &metrics_),
         .policy = *RecordPolicy::make(
             {.name = "belady", .samples = records + 1, .capacity = limit}),
         .is_lasting = level == CacheLevel::kDisk});
  }
  /// Leaves room in a tier for no more than this many records.
  void fill(std::size_t level, std::uint64_t room_for) {
    SegmentTier& tier = *tiers_[level].tier;
    const std::uint64_t left =
        tier.options().limit_bytes - room_for * kCost - 2 * kEntryBytes;
    const std::string body(left / kPageBytes * kPageBytes, 'f');
    ASSERT_TRUE(tier.insert(numbered_key(kFiller), as_bytes(body)));
  }
  void decide() { decisions_.emplace(take_policies(tiers_), uses_); }

  static std::string body_of(std::uint64_t n) {
    std::string body = std::to_string(n);
    body.resize(kSmall, ' ');
    return body;
  }
  /// The plan takes the record.
  CacheWrite plan(std::uint64_t n) {
    const std::string body = body_of(n);
    CacheWrite write = decisions_->fetched({.key = numbered_key(n),
                                            .hint = {.now = 1, .next_use = 90},
                                            .bytes = as_bytes(body)},
                                           /*asked=*/0);
    EXPECT_EQ(write.steps.size(), 1u);
    return write;
  }
  /// The same, and its write is queued.
  void fetch(std::uint64_t n) {
    const std::string body = body_of(n);
    queue_.push(plan(n), as_bytes(body), queue_.reserve(kSmall));
  }
  /// A later write makes room for all that wait.
  void free_filler(std::size_t level) {
    queue_.push(CacheWrite{.steps = {{.what = TierStep::What::kDropCopy,
                                      .level = level,
                                      .key = numbered_key(kFiller)}}});
  }
  bool reads(std::size_t level, std::uint64_t n) {
    std::string got(kSmall, '\0');
    return tiers_[level].tier->read(numbered_key(n),
                                    std::as_writable_bytes(std::span(got))) &&
           got == body_of(n);
  }
  /// Carries out what is queued, until the queue is empty.
  void write_all_queued() {
    TierWriter writer({.tiers = tiers_,
                       .queue = queue_,
                       .decisions = *decisions_,
                       .clock = plan_clock_,
                       .turns = nullptr,
                       .board = nullptr,
                       .metrics = &metrics_},
                      {});
    queue_.drain();
  }

  testing::FaultyFileOps ops_;
  FakeClock clock_;
  Metrics metrics_;
  PlanClock plan_clock_{100};
  const JobUses uses_{nullptr, 100, false};
  std::vector<CacheTier> tiers_;
  WriteQueue queue_{kGiB};
  std::optional<CacheDecisions> decisions_;
};

// The file calls tell how deep in its stack the thread is.
TEST_F(TierWriterTest, HoweverManyWaitForRoomTheStackStaysAsItIs) {
  constexpr std::uint64_t kWaiting = 5000;
  add_tier(CacheLevel::kRam, kWaiting + 1);
  fill(0, /*room_for=*/1);
  decide();
  for (std::uint64_t n = 0; n <= kWaiting; ++n) fetch(n);
  free_filler(0);
  std::uintptr_t low = ~std::uintptr_t{0};
  std::uintptr_t high = 0;
  ops_.set_script([&](testing::FileCall) {
    const auto at =
        reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
    low = std::min(low, at);
    high = std::max(high, at);
    return 0;
  });

  write_all_queued();

  EXPECT_LT(high - low, 64 * kKiB);
  EXPECT_GT(high, low);
  for (std::uint64_t n = 0; n <= kWaiting; ++n) ASSERT_TRUE(reads(0, n)) << n;
  EXPECT_EQ(metrics_.value(Metric::kCacheRefusals), 0);
}

TEST_F(TierWriterTest, WhatFindsNoRoomAfterAllOthersIsRefusedAndNotPlanned) {
  add_tier(CacheLevel::kRam, 4);
  fill(0, /*room_for=*/1);
  decide();
  for (const std::uint64_t n : {1, 2, 3}) fetch(n);

  write_all_queued();

  EXPECT_TRUE(reads(0, 1));
  for (const std::uint64_t n : {2, 3}) {
    EXPECT_FALSE(reads(0, n));
    EXPECT_FALSE(decisions_->holds(0, numbered_key(n)));
  }
  EXPECT_EQ(metrics_.value(Metric::kCacheRefusals), 2);
}

TEST_F(TierWriterTest, ARecordThatMovesDownStaysUntilThereIsRoomBelow) {
  add_tier(CacheLevel::kRam, 2);
  add_tier(CacheLevel::kDisk, 2);
  fill(1, /*room_for=*/0);
  decide();
  ASSERT_TRUE(tiers_[0].tier->insert(numbered_key(7), as_bytes(body_of(7))));
  (void)plan(7);
  CacheWrite smaller = decisions_->set_capacity(0, 0);
  ASSERT_EQ(smaller.steps.size(), 1u);
  ASSERT_EQ(smaller.steps[0].what, TierStep::What::kMove);
  queue_.push(std::move(smaller));
  free_filler(1);

  write_all_queued();

  EXPECT_TRUE(reads(1, 7));
  EXPECT_FALSE(reads(0, 7));
  EXPECT_EQ(metrics_.value(Metric::kCacheRefusals), 0);
}

}  // namespace
}  // namespace leat
