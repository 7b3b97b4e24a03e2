#include "leat/runtime/memory_budget.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace leat {
namespace {

TEST(MemoryBudgetTest, GivesBackWhatItsOwnerLetsGo) {
  Metrics metrics;
  MemoryBudget budget(100, &metrics);
  {
    Result<Reservation> held = budget.reserve(70, {});
    ASSERT_TRUE(held);
    EXPECT_EQ(budget.used_bytes(), 70u);
    EXPECT_EQ(metrics.value(Metric::kRuntimeReservedBytes), 70);
  }

  EXPECT_EQ(budget.used_bytes(), 0u);
  EXPECT_EQ(metrics.value(Metric::kRuntimeReservedBytes), 0);
}

TEST(MemoryBudgetTest, NamesTheBytesThatCanNeverFit) {
  MemoryBudget budget(100);

  const Result<Reservation> held = budget.reserve(101, {});

  ASSERT_FALSE(held);
  EXPECT_EQ(held.error().code(), ErrorCode::kResourceExhausted);
  EXPECT_NE(held.error().message().find("101 bytes"), std::string::npos);
}

TEST(MemoryBudgetTest, AShareIsSaidToBeOneWithTheFigureOfTheNode) {
  MemoryBudget budget(2048, nullptr, {.ranks = 8});

  const Result<Reservation> held = budget.reserve(4096, {});

  ASSERT_FALSE(held);
  EXPECT_NE(held.error().message().find(
                "this rank's share of memory= is 2 KiB (1 of 8 ranks on this "
                "node); raise memory= to more than 32 KiB"),
            std::string::npos)
      << held.error().message();
}

TEST(MemoryBudgetTest, APartOfAShareIsSaidToBeOneAndTheFigureIsOfTheWhole) {
  const MemoryBudget of_two(768, nullptr, {.bytes = 1024, .ranks = 2});
  const MemoryBudget alone(768, nullptr, {.bytes = 1024});

  EXPECT_EQ(of_two.allows_in_words(900),
            "this rank's share of memory= is 1 KiB (1 of 2 ranks on this "
            "node), 768 B of it for batches; raise memory= to more than 2.3 "
            "KiB");
  EXPECT_EQ(alone.allows_in_words(900),
            "memory= allows 1 KiB, 768 B of it for batches; raise memory= to "
            "more than 1.2 KiB");
  EXPECT_EQ(of_two.figure_for(900), 2400u);
  EXPECT_EQ(alone.figure_for(769), 1026u);
}

// Waits until `n` reserve() calls are in line.
void until_waiting(const MemoryBudget& budget, std::size_t n) {
  while (budget.waiting() != n) std::this_thread::yield();
}

TEST(MemoryBudgetTest, ASmallRequestNeverOvertakesALargeOne) {
  MemoryBudget budget(100);
  Result<Reservation> first = budget.reserve(60, {});
  ASSERT_TRUE(first);
  std::latch end(1);
  const auto hold = [&](std::uint64_t bytes) {
    Result<Reservation> held = budget.reserve(bytes, {});
    ASSERT_TRUE(held);
    end.wait();
  };
  std::jthread large([&] { hold(80); });
  until_waiting(budget, 1);
  std::jthread small([&] { hold(30); });
  until_waiting(budget, 2);

  EXPECT_EQ(budget.used_bytes(), 60u);  // 30 would fit, but 80 was first.
  first->release();
  until_waiting(budget, 1);
  EXPECT_EQ(budget.used_bytes(), 80u);
  end.count_down();
}

TEST(MemoryBudgetTest, WhoWouldHaveToWaitMayAskInVain) {
  MemoryBudget budget(100);
  std::optional<Reservation> first = budget.try_reserve(60);
  ASSERT_TRUE(first);
  EXPECT_EQ(budget.used_bytes(), 60u);
  EXPECT_FALSE(budget.try_reserve(41));

  std::latch end(1);
  std::jthread waits([&] {
    Result<Reservation> held = budget.reserve(70, {});
    EXPECT_TRUE(held);
    end.wait();
  });
  until_waiting(budget, 1);
  EXPECT_FALSE(budget.try_reserve(10));  // There is room, but not its turn.
  first.reset();
  until_waiting(budget, 0);

  EXPECT_EQ(budget.try_reserve(30)->bytes(), 30u);
  end.count_down();
}

TEST(MemoryBudgetTest, AStopEndsTheWaitAndLetsTheNextOneIn) {
  MemoryBudget budget(100);
  Result<Reservation> held = budget.reserve(60, {});
  ASSERT_TRUE(held);
  std::stop_source stop;
  Result<Reservation> large = Error(ErrorCode::kInternal, "not asked yet");
  std::jthread waiting([&] { large = budget.reserve(80, stop.get_token()); });
  until_waiting(budget, 1);
  Result<Reservation> small = Error(ErrorCode::kInternal, "not asked yet");
  std::jthread behind([&] { small = budget.reserve(40, {}); });
  stop.request_stop();
  waiting.join();
  behind.join();

  ASSERT_FALSE(large);
  EXPECT_EQ(large.error().code(), ErrorCode::kCancelled);
  EXPECT_TRUE(small);
}

TEST(MemoryBudgetTest, NeverGivesOutMoreThanItHas) {
  MemoryBudget budget(1000);
  std::atomic<std::uint64_t> most = 0;
  {
    std::vector<std::jthread> threads;
    for (std::uint64_t t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        for (std::uint64_t i = 0; i < 500; ++i) {
          Result<Reservation> held =
              budget.reserve(1 + (t * 131 + i * 17) % 900, {});
          ASSERT_TRUE(held);
          const std::uint64_t used = budget.used_bytes();
          std::uint64_t seen = most;
          while (seen < used && !most.compare_exchange_weak(seen, used)) {
          }
        }
      });
    }
  }

  EXPECT_LE(most, 1000u);
  EXPECT_EQ(budget.used_bytes(), 0u);
}

}  // namespace
}  // namespace leat
