#include "leat/runtime/executor.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <latch>
#include <memory>
#include <thread>
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

TEST(ExecutorTest, OnlyAsManyWorkAsMay) {
  std::atomic<int> at_once = 0;
  std::atomic<int> most = 0;
  std::latch done(40);
  const auto work = [&](std::size_t) {
    const int now = ++at_once;
    int seen = most.load();
    while (now > seen && !most.compare_exchange_weak(seen, now)) {
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    --at_once;
    done.count_down();
  };
  Executor executor("test", 4);
  executor.set_active(2);
  for (std::uint64_t i = 0; i < 40; ++i) executor.submit(i, work);
  done.wait();

  EXPECT_LE(most, 2);
  EXPECT_EQ(executor.active(), 2);
}

// All four have to be there at once for any of them to go on.
void all_four_meet(Executor& executor) {
  std::latch together(4);
  std::latch done(4);
  for (std::uint64_t i = 0; i < 4; ++i) {
    executor.submit(i, [&](std::size_t) {
      together.arrive_and_wait();
      done.count_down();
    });
  }
  executor.set_active(4);
  done.wait();
  EXPECT_EQ(executor.active(), 4);
}

TEST(ExecutorTest, WhoRestedWorksWhenMoreMay) {
  Executor executor("test", 4);
  executor.set_active(1);
  all_four_meet(executor);
}

TEST(ExecutorTest, WhoWasNeverWantedIsMadeWhenMoreMay) {
  Executor executor("test", 1, nullptr, 4);
  all_four_meet(executor);
  EXPECT_EQ(executor.threads(), 4);
}

TEST(ExecutorTest, ATaskBeginsWhenTheOneBeforeSaidThatItEnded) {
  std::vector<TimePoint> began;
  std::latch begin(1);
  std::latch done(3);
  const TimePoint told = SteadyClock().now() - std::chrono::hours(1);
  Executor executor("test", 1);
  executor.submit(0, [&](Executor::Turn& turn) {
    begin.wait();  // Until the others wait for their turn.
    turn.ended = told;
    done.count_down();
  });
  for (std::uint64_t i = 1; i < 3; ++i) {
    executor.submit(i, [&](Executor::Turn& turn) {
      began.push_back(turn.began);
      done.count_down();
    });
  }
  const TimePoint before = SteadyClock().now();
  begin.count_down();
  done.wait();

  EXPECT_EQ(began[0], told);
  EXPECT_GE(began[1], before) << "by the clock, where the task did not say";
}

TEST(ExecutorTest, AfterAWaitTheClockIsReadAgain) {
  Executor executor("test", 1);
  std::latch first(1);
  executor.submit(0, [&](Executor::Turn& turn) {
    turn.ended = turn.began - std::chrono::hours(1);
    first.count_down();
  });
  first.wait();
  // It counts, with the lock held, in the moment in which the thread looks for
  // another task.
  while (executor.work().tasks < 1) std::this_thread::yield();
  const TimePoint before = SteadyClock().now();
  TimePoint began;
  std::latch second(1);
  executor.submit(0, [&](Executor::Turn& turn) {
    began = turn.began;
    second.count_down();
  });
  second.wait();

  EXPECT_GE(began, before);
}

TEST(ExecutorTest, TellsWhatItsThreadsHaveDone) {
  std::latch done(3);
  Executor executor("test", 2);
  for (std::uint64_t i = 0; i < 3; ++i) {
    executor.submit(i, [&](std::size_t) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      done.count_down();
    });
  }
  done.wait();
  // A task counts once what it held is gone, a moment after it ran.
  while (executor.work().tasks < 3) std::this_thread::yield();

  const Executor::Work work = executor.work();
  EXPECT_EQ(work.tasks, 3);
  EXPECT_GE(work.busy, std::chrono::milliseconds(150));
  EXPECT_GT(work.cpu.count(), 0);
  EXPECT_LT(work.cpu, work.busy) << "they slept";
}

}  // namespace
}  // namespace leat
