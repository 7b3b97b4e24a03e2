#include "leat/store/layers/paced_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "leat/store/testing/fake_store.h"
#include "leat/store/testing/faulty_store.h"

namespace leat::testing {
namespace {

using ::testing::ElementsAre;

class PromptStore : public FakeStore {
 public:
  void read(ReadRequest, std::stop_token, ReadDone done) override { done({}); }
};

class HearingObserver final : public ReadObserver {
 public:
  void backs_off(TimePoint, TimePoint) override {}
  void held_back(TimePoint from, TimePoint until) override {
    waited += until - from;
  }
  Nanoseconds waited{};
};

class PacedStoreTest : public ::testing::Test {
 protected:
  PacedStoreTest() {
    auto held = std::make_unique<HeldStore>(std::make_unique<PromptStore>());
    held_ = held.get();
    store_ = std::make_unique<PacedStore>(std::move(held), &metrics_,
                                          std::make_shared<RequestPace>());
  }
  void read(const std::string& key, std::uint32_t attempt = 0,
            std::stop_token stop = {}) {
    store_->read({.object = {.key = key},
                  .into = bytes_,
                  .observer = &observer_,
                  .attempt = attempt},
                 std::move(stop), [](const Result<void>&) {});
  }
  /// The service refuses so many, of as many.
  void throttle(int count) {
    for (int i = 0; i < count; ++i) read("refused");
    for (int i = 0; i < count; ++i) {
      held_->fail_one(Error(ErrorCode::kThrottled, "SlowDown"));
    }
  }
  std::int64_t metric(Metric which) const { return metrics_.value(which); }

  Metrics metrics_;
  HearingObserver observer_;
  std::array<std::byte, 10> bytes_{};
  HeldStore* held_ = nullptr;
  std::unique_ptr<PacedStore> store_;
};

TEST_F(PacedStoreTest, SendsAtOnceToAStoreThatDoesNotThrottle) {
  for (int i = 0; i < 100; ++i) read("a");

  EXPECT_EQ(held_->held().size(), 100u);
  EXPECT_FALSE(store_->pace()->requests_per_second());
  for (int i = 0; i < 100; ++i) held_->release_one();
}

TEST_F(PacedStoreTest, HoldsReadsBackFromAStoreThatThrottles) {
  throttle(20);
  ASSERT_TRUE(store_->pace()->requests_per_second());
  EXPECT_EQ(metric(Metric::kStoreThrottled), 20);

  for (int i = 0; i < 1000; ++i) read(std::to_string(i));

  EXPECT_LT(held_->held().size(), 1000u);
  EXPECT_TRUE(store_->pace()->holds(SteadyClock().now()));
  // Nobody asks again: a timer sends them.
  for (int i = 0; i < 1000; ++i) {
    held_->wait_for(1);
    held_->release_one();
  }
  EXPECT_GT(observer_.waited, Nanoseconds(0));
}

TEST_F(PacedStoreTest, SendsARetryBeforeNewReadsAndAStoppedReadAtOnce) {
  throttle(20);
  std::stop_source stop;
  while (!store_->pace()->holds(SteadyClock().now()))
    read("new");  // Until one has to wait.
  const std::size_t sent = held_->held().size();
  read("again", /*attempt=*/1);
  read("stopped", 0, stop.get_token());
  stop.request_stop();

  const auto place_of = [&](std::string_view key) {
    const auto held = held_->held();
    return std::find(held.begin() + static_cast<std::ptrdiff_t>(sent),
                     held.end(), key) -
           held.begin();
  };
  // On a busy machine the retry's time may have come before it.
  EXPECT_LT(place_of("stopped"), std::ssize(held_->held()));
  held_->wait_for(sent + 3);

  EXPECT_LT(place_of("again"), place_of("new"));
  for (std::size_t i = 0; i < sent + 3; ++i) held_->release_one();
}

TEST_F(PacedStoreTest, CountsWhatItSendsAndEndsAtZero) {
  for (const char* key : {"a", "bad", "c"}) read(key);

  EXPECT_EQ(metric(Metric::kStoreInFlight), 3);
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  held_->release_one();
  held_->fail_one(Error(ErrorCode::kNotFound, "no such object"));
  held_->release_one();
  ASSERT_TRUE(store_->list({}, {}));

  EXPECT_EQ(metric(Metric::kStoreInFlight), 0);
  EXPECT_EQ(metric(Metric::kStoreReads), 3);
  EXPECT_EQ(metric(Metric::kStoreReadErrors), 1);
  EXPECT_EQ(metric(Metric::kStoreReadBytes), 20);
  EXPECT_EQ(metric(Metric::kStoreLists), 1);
  EXPECT_GE(metric(Metric::kStoreReadNanoseconds), 15'000'000);
}

}  // namespace
}  // namespace leat::testing
