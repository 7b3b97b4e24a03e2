#include "leat/runtime/executor.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <memory>
#include <vector>

namespace leat {
namespace {

TEST(ExecutorTest, TheTaskThatThePlanWantsFirstGoesFirst) {
  std::vector<int> order;
  std::latch begin(1);
  std::latch done(4);
  Executor executor("test", 1);
  executor.submit(0, [&](std::size_t) {
    begin.wait();
    done.count_down();
  });
  for (const int i : {3, 1, 2}) {
    executor.submit(static_cast<std::uint64_t>(i), [&, i](std::size_t) {
      order.push_back(i);
      done.count_down();
    });
  }
  begin.count_down();
  done.wait();

  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
}

TEST(ExecutorTest, ItsEndDropsWhatWaitsAndFreesWhatThatHolds) {
  Metrics metrics;
  auto held = std::make_shared<int>(1);
  std::latch running(1);
  std::latch let_go(1);
  std::atomic<int> ran = 0;
  {
    Executor executor("test", 1, &metrics);
    executor.submit(0, [&](std::size_t) {
      running.count_down();
      let_go.wait();
      ++ran;
    });
    running.wait();
    executor.submit(1, [&ran, held](std::size_t) { ++ran; });
    EXPECT_EQ(held.use_count(), 2);
    // The only thread is in the first task until it is told to stop too.
    std::jthread release([&] { let_go.count_down(); });
  }

  EXPECT_GE(ran, 1);
  EXPECT_EQ(held.use_count(), 1);
  EXPECT_EQ(metrics.value(Metric::kRuntimeExecutorTasks), 0);
}

}  // namespace
}  // namespace leat
