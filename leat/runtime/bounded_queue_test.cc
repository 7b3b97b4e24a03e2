#include "leat/runtime/bounded_queue.h"

#include <gtest/gtest.h>

#include <stop_token>
#include <thread>
#include <vector>

namespace leat {
namespace {

TEST(BoundedQueueTest, HandsOnInOrder) {
  BoundedQueue<int> queue(2);
  std::jthread producer([&](const std::stop_token& stop) {
    for (int i = 0; i < 100; ++i) ASSERT_TRUE(queue.push(i, stop));
    queue.close();
  });

  std::vector<int> got;
  while (auto item = queue.pop({})) got.push_back(*item);

  ASSERT_EQ(got.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(got[static_cast<std::size_t>(i)], i);
}

TEST(BoundedQueueTest, AStopEndsAWaitForRoomAndAWaitForItems) {
  BoundedQueue<int> queue(1);
  ASSERT_TRUE(queue.push(1, {}));
  std::stop_source stop;
  bool pushed = true;
  std::jthread producer([&] { pushed = queue.push(2, stop.get_token()); });
  stop.request_stop();
  producer.join();

  EXPECT_FALSE(pushed);
  EXPECT_FALSE(queue.pop(stop.get_token()));
  EXPECT_EQ(queue.pop({}), 1);  // Accepted items stay.
}

TEST(BoundedQueueTest, AfterCloseItRefusesAndDrains) {
  BoundedQueue<int> queue(3);
  ASSERT_TRUE(queue.push(1, {}));
  queue.close();

  EXPECT_FALSE(queue.push(2, {}));
  EXPECT_EQ(queue.pop({}), 1);
  EXPECT_FALSE(queue.pop({}));
}

TEST(BoundedQueueTest, TimesTheConsumersWait) {
  BoundedQueue<int> queue(1);
  std::jthread consumer([&] {
    while (queue.pop({})) {
    }
  });
  // Each push finds an empty queue, so before long one finds a waiting
  // consumer.
  for (int i = 0; i < 100'000 && queue.waits().pop.count() == 0; ++i) {
    ASSERT_TRUE(queue.push(i, {}));
    while (queue.size() != 0) std::this_thread::yield();
  }
  queue.close();
  consumer.join();

  EXPECT_GT(queue.waits().pop.count(), 0);
}

}  // namespace
}  // namespace leat
