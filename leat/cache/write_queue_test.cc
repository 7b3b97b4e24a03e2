#include "leat/cache/write_queue.h"

#include <gtest/gtest.h>

#include <string_view>
#include <utility>

namespace leat {
namespace {

RecordKey write_key(std::uint64_t number) {
  return record_key({.url = std::to_string(number)});
}

std::span<const std::byte> bytes_in(std::string_view text) {
  return std::as_bytes(std::span(text));
}

CacheWrite write_of(std::uint64_t number) {
  return {.steps = {{.what = TierStep::What::kPut}}, .key = write_key(number)};
}

TEST(WriteQueueTest, AWriteIsFoundFromWhenItIsQueuedUntilItIsWritten) {
  WriteQueue queue(100);
  ASSERT_TRUE(queue.reserve(3));
  queue.push(write_of(1), bytes_in("abc"), /*is_reserved=*/true);
  ASSERT_NE(queue.find(write_key(1)), nullptr);
  EXPECT_EQ(queue.find(write_key(2)), nullptr);

  const auto taken = queue.take();
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->body.size(), 3u);
  EXPECT_EQ(taken->body[2], std::byte{'c'});
  EXPECT_NE(queue.find(write_key(1)), nullptr);  // A look-up meanwhile has it.

  queue.written(*taken);
  EXPECT_EQ(queue.find(write_key(1)), nullptr);
  EXPECT_FALSE(queue.take());
}

TEST(WriteQueueTest, RoomIsTakenOnceAndGivenBackOnce) {
  WriteQueue queue(10);
  ASSERT_TRUE(queue.reserve(6));
  EXPECT_FALSE(queue.reserve(5));
  // Nothing is to be put: the room is free at once.
  queue.push({.key = write_key(1)}, bytes_in("123456"), /*is_reserved=*/true);
  EXPECT_FALSE(queue.take());

  ASSERT_TRUE(queue.reserve(5));
  queue.push(write_of(2), bytes_in("12345"), /*is_reserved=*/true);
  EXPECT_FALSE(queue.reserve(6));
  const auto taken = queue.take();
  EXPECT_FALSE(queue.reserve(6));  // Its copy is still there.
  queue.written(*taken);
  EXPECT_TRUE(queue.reserve(6));
}

TEST(WriteQueueTest, OneCopyMayBeLargerThanAll) {
  WriteQueue queue(10);
  EXPECT_TRUE(queue.reserve(1000));
  EXPECT_FALSE(queue.reserve(1));
}

TEST(WriteQueueTest, MoreMayWaitWhereThatIsAskedFor) {
  WriteQueue queue(10);
  ASSERT_TRUE(queue.reserve(10));
  EXPECT_FALSE(queue.reserve(10));

  queue.set_least(20);
  EXPECT_TRUE(queue.reserve(10));

  queue.set_least(0);
  EXPECT_FALSE(queue.reserve(1));
}

TEST(WriteQueueTest, ALaterCopyOfARecordOutlivesAnEarlierOne) {
  WriteQueue queue(100);
  for (const std::string_view text : {"a", "b"}) {
    ASSERT_TRUE(queue.reserve(1));
    queue.push(write_of(1), bytes_in(text), /*is_reserved=*/true);
  }

  queue.written(*queue.take());

  ASSERT_NE(queue.find(write_key(1)), nullptr);
  EXPECT_EQ(queue.find(write_key(1))->span()[0], std::byte{'b'});
}

TEST(WriteQueueTest, WritesComeInTheOrderOfTheirDecisions) {
  WriteQueue queue(100);
  ASSERT_TRUE(queue.reserve(1));
  queue.push(write_of(1), bytes_in("a"), /*is_reserved=*/true);
  queue.push_own({.key = write_key(2)});
  queue.push({.key = write_key(3)});

  for (const std::uint64_t number : {1, 2, 3}) {
    EXPECT_EQ(queue.take()->key, write_key(number));
  }
}

}  // namespace
}  // namespace leat
