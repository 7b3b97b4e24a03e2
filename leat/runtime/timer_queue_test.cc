#include "leat/runtime/timer_queue.h"

#include <gtest/gtest.h>

#include <latch>
#include <vector>

namespace leat {
namespace {

using std::chrono::milliseconds;

TEST(TimerQueueTest, RunsInTheOrderOfTimeAndNotBefore) {
  TimerQueue timers;
  std::vector<int> order;
  std::latch done(3);
  const TimePoint begin = SteadyClock().now();
  std::latch all_are_there(1);  // None runs before.
  timers.at(begin, [&] { all_are_there.wait(); });
  for (const int i : {3, 1, 2}) {
    timers.at(begin + milliseconds(5 * i), [&, i] {
      EXPECT_GE(SteadyClock().now(), begin + milliseconds(5 * i));
      order.push_back(i);
      done.count_down();
    });
  }
  all_are_there.count_down();
  done.wait();

  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
}

TEST(TimerQueueTest, ACancelledFunctionNeverRuns) {
  bool ran = false;
  {
    TimerQueue timers;
    const auto id = timers.after(std::chrono::hours(1), [&] { ran = true; });
    EXPECT_TRUE(timers.cancel(id));
    EXPECT_FALSE(timers.cancel(id));
    std::latch done(1);
    timers.after(milliseconds(1), [&] { done.count_down(); });
    done.wait();
  }

  EXPECT_FALSE(ran);
}

TEST(TimerQueueTest, ItsEndDropsWhatIsNotDue) {
  bool ran = false;
  {
    TimerQueue timers;
    timers.after(std::chrono::hours(1), [&] { ran = true; });
  }

  EXPECT_FALSE(ran);
}

}  // namespace
}  // namespace leat
