#include "leat/store/layers/hedged_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "leat/store/testing/fake_store.h"

namespace leat::testing {
namespace {

using std::chrono::milliseconds;

/// Keeps reads until the test answers them; a stopped one is cancelled at once.
class AnsweredByHand final : public FakeStore {
 public:
  ~AnsweredByHand() override {
    for (const auto& call : calls_)
      call->on_stop.reset();  // It holds the call.
  }
  void read(ReadRequest request, std::stop_token stop, ReadDone done) override {
    auto call = std::make_shared<Call>();
    call->into = request.into;
    call->done = std::move(done);
    {
      const MutexLock lock(mutex_);
      calls_.push_back(call);
      changed_.notify_all();
    }
    call->on_stop.emplace(std::move(stop), [call] {
      const auto held = call;
      held->end(Error(ErrorCode::kCancelled, "cancelled"));
    });
  }
  /// Waits until there is one of that number.
  void answer(std::size_t number, char byte) {
    const auto call = wait_for(number);
    std::ranges::fill(call->into, static_cast<std::byte>(byte));
    call->end({});
  }
  void fail(std::size_t number) {
    wait_for(number)->end(Error(ErrorCode::kUnavailable, "reset"));
  }
  std::size_t calls() const {
    const MutexLock lock(mutex_);
    return calls_.size();
  }

 private:
  struct Call {
    std::span<std::byte> into;
    ReadDone done;
    std::atomic<bool> has_ended = false;
    std::optional<std::stop_callback<std::function<void()>>> on_stop;
    void end(Result<void> result) {
      if (!has_ended.exchange(true)) done(std::move(result));
    }
  };
  std::shared_ptr<Call> wait_for(std::size_t number) {
    MutexLock lock(mutex_);
    while (calls_.size() <= number) changed_.wait(lock);
    return calls_[number];
  }

  mutable Mutex mutex_;
  CondVar changed_;
  std::vector<std::shared_ptr<Call>> calls_ LEAT_GUARDED_BY(mutex_);
};

class WaitingObserver final : public ReadObserver {
 public:
  void backs_off(TimePoint, TimePoint) override {}
  bool is_awaited() const override { return is_awaited_; }
  std::atomic<bool> is_awaited_ = true;
};

constexpr milliseconds kLeastAge(100);

class HedgedStoreTest : public ::testing::Test {
 protected:
  HedgedStoreTest() { make(); }
  void make() {
    store_.reset();
    auto inner = std::make_unique<AnsweredByHand>();
    inner_ = inner.get();
    store_ = std::make_unique<HedgedStore>(
        std::move(inner),
        [this](std::size_t duplicates) { return duplicates <= room_; },
        &metrics_, kLeastAge);
  }
  void TearDown() override { store_.reset(); }

  std::size_t read(std::stop_token stop = {}) {
    const std::size_t number = inner_->calls();
    bytes_.fill(std::byte{'-'});
    result_.reset();
    has_result_ = false;
    store_->read(
        {.object = {.key = "k"}, .into = bytes_, .observer = &observer_},
        std::move(stop), [this](Result<void> result) {
          result_ = std::move(result);
          has_result_ = true;
        });
    return number;
  }
  /// Afterwards it is known that reads take next to no time.
  void learn() {
    for (int i = 0; i < 60; ++i) inner_->answer(read(), 'x');
  }
  char byte() const { return static_cast<char>(bytes_[9]); }
  std::int64_t metric(Metric which) const { return metrics_.value(which); }

  Metrics metrics_;
  WaitingObserver observer_;
  std::atomic<std::size_t> room_ = 1;
  std::array<std::byte, 10> bytes_{};
  std::optional<Result<void>> result_;
  std::atomic<bool> has_result_ = false;
  AnsweredByHand* inner_ = nullptr;
  std::unique_ptr<HedgedStore> store_;
};

TEST_F(HedgedStoreTest, TakesTheSecondAnswerToALateReadThatIsAwaited) {
  learn();
  const std::size_t first = read();

  inner_->answer(first + 1, 'b');

  ASSERT_TRUE(result_);
  EXPECT_TRUE(*result_);
  EXPECT_EQ(byte(), 'b');
  EXPECT_EQ(metric(Metric::kStoreHedges), 1);
  EXPECT_EQ(metric(Metric::kStoreHedgesWon), 1);
}

TEST_F(HedgedStoreTest, TakesTheFirstAnswerThatComes) {
  learn();
  const std::size_t first = read();
  while (inner_->calls() < first + 2) std::this_thread::yield();
  room_ = 0;  // No third.

  inner_->answer(first, 'a');

  ASSERT_TRUE(result_);
  EXPECT_TRUE(*result_);
  EXPECT_EQ(byte(), 'a');
  EXPECT_EQ(metric(Metric::kStoreHedgesWon), 0);
}

TEST_F(HedgedStoreTest, AFailureWaitsForTheOtherAnswer) {
  learn();
  const std::size_t first = read();
  while (inner_->calls() < first + 2) std::this_thread::yield();
  room_ = 0;  // No third.

  inner_->fail(first);
  EXPECT_FALSE(has_result_);
  inner_->answer(first + 1, 'b');

  ASSERT_TRUE(result_);
  EXPECT_TRUE(*result_);
  EXPECT_EQ(byte(), 'b');
}

TEST_F(HedgedStoreTest, FailsOnceBothHaveFailed) {
  learn();
  const std::size_t first = read();
  while (inner_->calls() < first + 2) std::this_thread::yield();
  room_ = 0;  // No third.

  inner_->fail(first + 1);
  EXPECT_FALSE(has_result_);
  inner_->fail(first);

  ASSERT_TRUE(result_);
  ASSERT_FALSE(*result_);
  EXPECT_EQ(result_->error().code(), ErrorCode::kUnavailable);
}

TEST_F(HedgedStoreTest, AStopEndsBoth) {
  learn();
  std::stop_source stop;
  const std::size_t first = read(stop.get_token());
  while (inner_->calls() < first + 2) std::this_thread::yield();
  room_ = 0;  // No third.

  stop.request_stop();
  // The second may be on its way to the store at that moment.
  while (!has_result_) std::this_thread::yield();

  ASSERT_TRUE(result_);
  ASSERT_FALSE(*result_);
  EXPECT_EQ(result_->error().code(), ErrorCode::kCancelled);
}

TEST_F(HedgedStoreTest, SendsNothingTwiceWithoutAReason) {
  const auto is_sent_twice = [&] {
    const std::size_t first = read();
    std::this_thread::sleep_for(3 * kLeastAge);
    const bool is = inner_->calls() > first + 1;
    inner_->answer(first, 'a');
    return is;
  };
  EXPECT_FALSE(is_sent_twice());  // Nobody knows what is usual.
  learn();
  room_ = 0;
  EXPECT_FALSE(is_sent_twice());
  room_ = 1;
  observer_.is_awaited_ = false;
  EXPECT_FALSE(is_sent_twice());
  observer_.is_awaited_ = true;
  EXPECT_TRUE(is_sent_twice());
}

TEST_F(HedgedStoreTest, ASecondThatIsLateItselfGivesWayToAnotherOnce) {
  learn();
  learn();
  const std::size_t first = read();

  while (inner_->calls() < first + 3) std::this_thread::yield();
  std::this_thread::sleep_for(3 * kLeastAge);
  EXPECT_EQ(inner_->calls(), first + 3);
  inner_->answer(first + 1, 'b');  // It was stopped.
  EXPECT_FALSE(has_result_);
  inner_->answer(first + 2, 'c');

  ASSERT_TRUE(result_);
  EXPECT_TRUE(*result_);
  EXPECT_EQ(byte(), 'c');
  EXPECT_EQ(metric(Metric::kStoreHedges), 2);
  EXPECT_EQ(metric(Metric::kStoreHedgesWon), 1);
}

TEST_F(HedgedStoreTest, WhatNobodyWaitsForIsSentTwiceWhileMuchIsSaved) {
  learn();
  learn();  // Eight are allowed by now.
  observer_.is_awaited_ = false;
  const std::size_t first = read();
  inner_->answer(first + 1, 'b');
  ASSERT_TRUE(result_);
  EXPECT_EQ(byte(), 'b');

  const std::size_t next = read();
  std::this_thread::sleep_for(3 * kLeastAge);
  EXPECT_EQ(inner_->calls(), next + 1);
  inner_->answer(next, 'a');
}

TEST_F(HedgedStoreTest, SendsNoMoreThanTwoOfAHundredTwice) {
  learn();
  learn();
  learn();
  for (int i = 0; i < 12; ++i) {
    const std::size_t first = read();
    std::this_thread::sleep_for(2 * kLeastAge);
    inner_->answer(first, 'a');
  }
  // And six, for the first batches.
  EXPECT_GE(metric(Metric::kStoreHedges), 6);
  EXPECT_LE(metric(Metric::kStoreHedges), 6 + 192 / 50);
}

TEST_F(HedgedStoreTest, OneOfTheFirstReadsHasASecondSooner) {
  const auto age_of_second = [&](std::size_t reads_before) {
    make();
    // Half of them take 80 ms.
    std::atomic<std::size_t> answers = 0;
    std::vector<std::array<std::byte, 10>> into(reads_before);
    for (auto& bytes : into) {
      store_->read(
          {.object = {.key = "k"}, .into = bytes, .observer = &observer_}, {},
          [&](const Result<void>&) { ++answers; });
    }
    std::this_thread::sleep_for(milliseconds(80));
    for (std::size_t i = 0; i < reads_before; ++i) inner_->answer(i, 'x');
    const TimePoint began = SteadyClock().now();
    const std::size_t first = read();
    while (inner_->calls() < first + 2) std::this_thread::yield();
    const Nanoseconds age = SteadyClock().now() - began;
    inner_->answer(first + 1, 'b');
    return age;
  };

  // 2.25 and 3.5 times as long.
  EXPECT_LT(age_of_second(60) + milliseconds(40), age_of_second(300));
}

TEST(UsualTimeTest, TellsQuantilesOfRecentTimes) {
  UsualTime usual;
  for (int i = 0; i < 49; ++i) usual.add(milliseconds(10));
  EXPECT_FALSE(usual.at(0.5));
  for (int i = 0; i < 950; ++i) usual.add(milliseconds(10 + i % 10));
  ASSERT_TRUE(usual.at(0.5));
  EXPECT_NEAR(to_seconds(*usual.at(0.5)), 0.015, 0.003);
  EXPECT_NEAR(to_seconds(*usual.at(0.99)), 0.019, 0.004);

  for (int i = 0; i < 10'000; ++i) usual.add(milliseconds(500));
  EXPECT_NEAR(to_seconds(*usual.at(0.05)), 0.5, 0.1);
}

}  // namespace
}  // namespace leat::testing
