#include "leat/pipeline/slot_pool.h"

#include <gtest/gtest.h>

#include <optional>
#include <thread>
#include <vector>

namespace leat {
namespace {

TEST(SlotPoolTest, UsesTheMemoryOfADeadSlotAgain) {
  auto metrics = std::make_shared<Metrics>();
  SlotPool pool(1 << 20, metrics);
  const void* first = pool.take(1000)->bytes().data();

  const SlotRef second = pool.take(900);

  EXPECT_EQ(second->bytes().data(), first);
  EXPECT_EQ(second->bytes().size(), 900u);
  EXPECT_EQ(metrics->value(Metric::kPipelineFreshSlots), 1);
}

TEST(SlotPoolTest, AHeldSlotIsNeverHandedOutAgain) {
  SlotPool pool(1 << 20, std::make_shared<Metrics>());
  const SlotRef held = pool.take(1000);

  const SlotRef other = pool.take(1000);

  EXPECT_NE(other->bytes().data(), held->bytes().data());
}

TEST(SlotPoolTest, KeepsNoMoreThanItMay) {
  auto metrics = std::make_shared<Metrics>();
  SlotPool pool(1500, metrics);
  {
    const SlotRef a = pool.take(1000);
    const SlotRef b = pool.take(1000);
    EXPECT_EQ(metrics->value(Metric::kPipelineSlotBytes), 2000);
  }

  EXPECT_EQ(metrics->value(Metric::kPipelineSlotBytes), 1000);
}

TEST(SlotPoolTest, ASlotOutlivesThePoolAndDiesOnAnyThread) {
  auto metrics = std::make_shared<Metrics>();
  std::optional<SlotPool> pool(std::in_place, 1 << 20, metrics);
  SlotRef held = pool->take(1000);
  pool.reset();
  held->bytes()[999] = std::byte{7};

  std::jthread([slot = std::move(held)]() mutable { slot.reset(); }).join();

  EXPECT_EQ(metrics->value(Metric::kPipelineSlotBytes), 0);
}

}  // namespace
}  // namespace leat
