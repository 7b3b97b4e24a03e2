#include "leat/store/layers/limited_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <functional>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "leat/store/testing/fake_store.h"
#include "leat/store/testing/faulty_store.h"

namespace leat::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// Answers every read before read() returns.
class InstantStore : public FakeStore {
 public:
  void read(ReadRequest, std::stop_token stop, ReadDone done) override {
    if (stop.stop_requested()) {
      return done(Error(ErrorCode::kCancelled, "cancelled"));
    }
    done({});
  }
};

class LimitedStoreTest : public ::testing::Test {
 protected:
  void open(std::size_t window) {
    auto held = std::make_unique<HeldStore>(std::make_unique<InstantStore>());
    held_ = held.get();
    store_ = std::make_unique<LimitedStore>(std::move(held), window, &metrics_);
  }
  void read(const std::string& key, std::uint32_t attempt = 0,
            std::stop_token stop = {}) {
    store_->read({.object = {.key = key}, .into = bytes_, .attempt = attempt},
                 std::move(stop), [this, key](const Result<void>& result) {
                   answered_.push_back(key + (result ? "" : "!"));
                 });
  }
  std::int64_t metric(Metric which) const { return metrics_.value(which); }

  Metrics metrics_;
  std::array<std::byte, 10> bytes_{};
  std::unique_ptr<LimitedStore> store_;
  HeldStore* held_ = nullptr;
  std::vector<std::string> answered_;
};

TEST_F(LimitedStoreTest, SendsNoMoreThanTheWindowInTheOrderTheyCame) {
  open(2);
  for (const char* key : {"a", "b", "c", "d"}) read(key);

  EXPECT_THAT(held_->held(), ElementsAre("a", "b"));
  held_->release_one();
  EXPECT_THAT(held_->held(), ElementsAre("b", "c"));
  for (int i = 0; i < 3; ++i) held_->release_one();

  EXPECT_THAT(answered_, ElementsAre("a", "b", "c", "d"));
}

TEST_F(LimitedStoreTest, SendsWhatIsSentAgainBeforeWhatIsNew) {
  open(1);
  read("a");
  read("b");
  read("c");
  read("again-1", /*attempt=*/1);
  read("again-2", /*attempt=*/2);

  for (int i = 0; i < 5; ++i) held_->release_one();

  EXPECT_THAT(answered_, ElementsAre("a", "again-1", "again-2", "b", "c"));
}

TEST_F(LimitedStoreTest, WidensAndNarrowsItsWindowAsItRuns) {
  open(1);
  for (const char* key : {"a", "b", "c", "d", "e"}) read(key);

  store_->set_window(3);
  EXPECT_THAT(held_->held(), ElementsAre("a", "b", "c"));
  store_->set_window(2);
  held_->release_one();
  EXPECT_THAT(held_->held(), ElementsAre("b", "c"));
  held_->release_one();
  EXPECT_THAT(held_->held(), ElementsAre("c", "d"));
  EXPECT_EQ(store_->window(), 2u);

  for (int i = 0; i < 3; ++i) held_->release_one();
}

TEST_F(LimitedStoreTest, PassesAStoppedReadOnThoughTheWindowIsFull) {
  open(1);
  std::stop_source source;
  read("stuck");
  read("stopped", 0, source.get_token());
  read("waits");

  source.request_stop();

  EXPECT_THAT(held_->held(), ElementsAre("stuck", "stopped"));
  for (int i = 0; i < 3; ++i) held_->release_one();
  EXPECT_THAT(answered_, ElementsAre("stuck", "stopped!", "waits"));
}

TEST_F(LimitedStoreTest, TakesAReadThatIsStoppedAlready) {
  open(1);
  std::stop_source source;
  source.request_stop();
  read("stuck");

  read("stopped", 0, source.get_token());

  EXPECT_THAT(held_->held(), ElementsAre("stuck", "stopped"));
  held_->release_one();
  held_->release_one();
  EXPECT_THAT(answered_, ElementsAre("stuck", "stopped!"));
}

TEST(LimitedStoreDepthTest, AnswersManyInlineReadsOnAShallowStack) {
  LimitedStore store(std::make_unique<InstantStore>(), 1, nullptr);
  std::size_t left = 200'000;  // A frame each would be more than a stack.
  std::array<std::byte, 1> byte{};
  std::function<void(Result<void>)> next = [&](const Result<void>&) {
    if (--left == 0) return;
    store.read({.object = {.key = "k"}, .into = byte}, {}, next);
  };

  store.read({.object = {.key = "k"}, .into = byte}, {}, next);

  EXPECT_EQ(left, 0u);
}

TEST(LimitedStoreThreadsTest, KeepsItsWindowUnderManyThreads) {
  constexpr std::size_t kThreads = 4;
  constexpr std::size_t kEach = 2000;
  constexpr std::size_t kWindow = 3;

  /// Answers from other threads, and looks at how many are in flight.
  class CountingStore final : public InstantStore {
   public:
    void read(ReadRequest, std::stop_token, ReadDone done) override {
      const std::size_t now = ++in_flight;
      std::size_t most = most_in_flight;
      while (now > most && !most_in_flight.compare_exchange_weak(most, now)) {
      }
      const MutexLock lock(mutex_);
      waiting_.push_back(std::move(done));
      changed_.notify_one();
    }
    void answer(const std::stop_token& stop) {
      MutexLock lock(mutex_);
      while (changed_.wait(lock, stop, [this]() LEAT_NO_THREAD_SAFETY_ANALYSIS {
        return !waiting_.empty();
      })) {
        const ReadDone done = std::move(waiting_.back());
        waiting_.pop_back();
        lock.unlock();
        --in_flight;
        done({});
        lock.lock();
      }
    }
    std::atomic<std::size_t> in_flight = 0;
    std::atomic<std::size_t> most_in_flight = 0;

   private:
    Mutex mutex_;
    CondVar changed_;
    std::vector<ReadDone> waiting_ LEAT_GUARDED_BY(mutex_);
  };

  auto counting = std::make_unique<CountingStore>();
  CountingStore& inner = *counting;
  auto store =
      std::make_unique<LimitedStore>(std::move(counting), kWindow, nullptr);
  std::latch answered(kThreads * kEach);
  std::array<std::byte, 1> byte{};
  {
    std::vector<std::jthread> answerers;
    answerers.reserve(2);
    for (int i = 0; i < 2; ++i) {
      answerers.emplace_back(
          [&](const std::stop_token& stop) { inner.answer(stop); });
    }
    std::vector<std::jthread> readers;
    readers.reserve(kThreads);
    for (std::size_t i = 0; i < kThreads; ++i) {
      readers.emplace_back([&] {
        for (std::size_t n = 0; n < kEach; ++n) {
          store->read({.object = {.key = "k"}, .into = byte}, {},
                      [&](const Result<void>&) { answered.count_down(); });
        }
      });
    }
    answered.wait();
  }

  EXPECT_LE(inner.most_in_flight, kWindow);
}

TEST_F(LimitedStoreTest, SendsNoMoreBytesThanItsRateHasPaidFor) {
  open(8);
  store_->set_bytes_per_second(1);  // Ten bytes: paid for in ten seconds.
  for (const char* key : {"a", "b", "c"}) read(key);

  EXPECT_THAT(held_->held(), ElementsAre("a"));
  store_->set_bytes_per_second(std::nullopt);
  EXPECT_THAT(held_->held(), ElementsAre("a", "b", "c"));
  for (int i = 0; i < 3; ++i) held_->release_one();
}

TEST_F(LimitedStoreTest, GoesOnOnceWhatWasSentIsPaidFor) {
  open(8);
  const TimePoint began = SteadyClock().now();
  store_->set_bytes_per_second(1000);
  for (int i = 0; i < 6; ++i) read(std::to_string(i));
  // Asked by nobody: a timer sends them.
  for (int answered = 0; answered < 6;) {
    if (held_->held().empty()) {
      std::this_thread::yield();
      continue;
    }
    held_->release_one();
    ++answered;
  }
  EXPECT_GE(SteadyClock().now() - began, std::chrono::milliseconds(50));
}

TEST_F(LimitedStoreTest, ARateDoesNotHoldWhatWasStopped) {
  open(8);
  store_->set_bytes_per_second(1);
  std::stop_source stop;
  read("a");
  read("b", 0, stop.get_token());
  stop.request_stop();

  EXPECT_THAT(held_->held(), ElementsAre("a", "b"));
  for (int i = 0; i < 2; ++i) held_->release_one();
}

TEST_F(LimitedStoreTest, CountsHowLongReadsWaited) {
  open(1);
  read("a");
  read("b");
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  held_->release_one();
  held_->release_one();

  EXPECT_GE(metric(Metric::kStoreWaitNanoseconds), 5'000'000);
}

}  // namespace
}  // namespace leat::testing
