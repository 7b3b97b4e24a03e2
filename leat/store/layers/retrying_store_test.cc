#include "leat/store/layers/retrying_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <latch>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "leat/store/layers/limited_store.h"
#include "leat/store/layers/paced_store.h"
#include "leat/store/reply_box.h"
#include "leat/store/testing/faulty_store.h"

namespace leat::testing {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using ::testing::HasSubstr;

/// One object of two bytes, "k".
class TinyStore final : public Store {
 public:
  void read(ReadRequest request, std::stop_token, ReadDone done) override {
    request.into[0] = std::byte{'y'};
    done({});
  }
  Result<ListPage> list(const ListRequest&, std::stop_token) override {
    return ListPage{.objects = {{.key = "k"}}, .common_prefixes = {}};
  }
  Result<ObjectInfo> write(std::string_view key, std::span<const std::byte>,
                           std::stop_token) override {
    return ObjectInfo{.key = std::string(key)};
  }
  Result<ObjectInfo> stat(std::string_view key, std::stop_token) override {
    return ObjectInfo{.key = std::string(key)};
  }
  StoreTraits traits() const override { return {}; }
  std::string url_of(std::string_view key) const override {
    return std::string(key);
  }
};

class CountingObserver final : public ReadObserver {
 public:
  void backs_off(TimePoint from, TimePoint until) override {
    EXPECT_LE(from, until);
    ++count;
  }
  int count = 0;
};

constexpr RetryOptions kQuick{.max_attempts = 10,
                              .base_backoff = microseconds(100),
                              .most_backoff = microseconds(500),
                              .tries_per_second = 1e5};
constexpr RetryOptions kSlow{
    .max_attempts = 10, .base_backoff = hours(1), .most_backoff = hours(1)};

class RetryingStoreTest : public ::testing::Test {
 protected:
  void open(FaultyStore::Script script, RetryOptions options = kQuick) {
    auto faulty = std::make_unique<FaultyStore>(std::make_unique<TinyStore>(),
                                                std::move(script));
    faulty_ = faulty.get();
    store_ = std::make_unique<RetryingStore>(std::move(faulty), options,
                                             /*seed=*/1, &metrics_);
  }
  Result<void> read(std::stop_token stop = {}) {
    return read_range(*store_,
                      {.object = {.key = "k"},
                       .into = std::span(&byte_, 1),
                       .observer = &observer_},
                      std::move(stop));
  }
  /// Reads, and stops at once what backs off.
  Result<void> read_and_stop() {
    std::stop_source source;
    ReplyBox<Result<void>> box;
    store_->read({.object = {.key = "k"}, .into = std::span(&byte_, 1)},
                 source.get_token(),
                 [&](Result<void> result) { box.put(std::move(result)); });
    source.request_stop();
    return box.take();
  }

  Metrics metrics_;
  CountingObserver observer_;
  std::byte byte_{};
  std::unique_ptr<RetryingStore> store_;
  FaultyStore* faulty_ = nullptr;
};

TEST_F(RetryingStoreTest, AsksAgainUntilItSucceeds) {
  for (const ErrorCode code : {ErrorCode::kUnavailable, ErrorCode::kThrottled,
                               ErrorCode::kDeadlineExceeded}) {
    observer_.count = 0;
    open(fail_first(3, code));

    const auto result = read();

    EXPECT_TRUE(result) << result.error().message();
    EXPECT_EQ(byte_, std::byte{'y'});
    EXPECT_EQ(faulty_->calls(), 4u);
    EXPECT_EQ(observer_.count, 3);
  }
  EXPECT_EQ(metrics_.value(Metric::kStoreRetries), 9);
  EXPECT_GT(metrics_.value(Metric::kStoreBackoffNanoseconds), 0);
}

TEST_F(RetryingStoreTest, CountsAttemptsForTheLayersBelow) {
  std::vector<std::uint32_t> attempts;
  open([&](const FaultyCall& call) -> std::optional<Error> {
    attempts.push_back(call.attempt);
    if (call.nth == 2) return std::nullopt;
    return Error(ErrorCode::kUnavailable, "down");
  });

  ASSERT_TRUE(read());

  EXPECT_THAT(attempts, ::testing::ElementsAre(0, 1, 2));
}

TEST_F(RetryingStoreTest, DoesNotRepeatWhatNoRepeatCanHelp) {
  for (const ErrorCode code :
       {ErrorCode::kNotFound, ErrorCode::kPermissionDenied,
        ErrorCode::kInvalidArgument, ErrorCode::kCorrupt, ErrorCode::kCancelled,
        ErrorCode::kResourceExhausted}) {
    open(fail_first(100, code));

    const auto result = read();

    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code(), code);
    EXPECT_EQ(result.error().message(), "a fault of the test");
    EXPECT_EQ(faulty_->calls(), 1u);
  }
}

TEST_F(RetryingStoreTest, GivesUpAfterItsAttemptsAndSaysWhatToChange) {
  open(fail_first(100, ErrorCode::kThrottled));

  const auto result = read();

  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), ErrorCode::kThrottled);
  EXPECT_EQ(faulty_->calls(), 10u);
  EXPECT_THAT(result.error().message(), HasSubstr("after 10 attempts"));
  EXPECT_THAT(result.error().message(), HasSubstr("AWS_MAX_ATTEMPTS"));
  EXPECT_THAT(result.error().message(), HasSubstr("a fault of the test"));
}

TEST_F(RetryingStoreTest, GivesUpSoonOnWhatWasNeverThere) {
  RetryOptions options = kQuick;
  options.max_attempts = 1000;
  options.start_patience = std::chrono::milliseconds(5);
  const auto notes = std::make_shared<EndpointNotes>();
  const auto open_noted = [&](std::uint64_t failures) {
    auto faulty = std::make_unique<FaultyStore>(
        std::make_unique<TinyStore>(),
        fail_first(failures, ErrorCode::kUnavailable));
    faulty_ = faulty.get();
    store_ = std::make_unique<RetryingStore>(std::move(faulty), options, 1,
                                             &metrics_, notes);
  };
  open_noted(100'000);

  const auto result = read();
  const auto listed = store_->list({.prefix = "k"}, {});

  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().message(), HasSubstr("not reached by"));
  EXPECT_THAT(result.error().message(),
              ::testing::Not(HasSubstr("AWS_MAX_ATTEMPTS")));
  EXPECT_FALSE(listed);
  EXPECT_LT(faulty_->calls(), 1000u);

  notes->note_answer(SteadyClock().now());  // Now it is an outage.
  open_noted(900);
  EXPECT_TRUE(read());
}

TEST_F(RetryingStoreTest, GivesUpOnWhatSwallowsEverythingAndSaysWhatToCheck) {
  RetryOptions options = kQuick;
  options.silent_patience = Nanoseconds(0);
  const auto notes = std::make_shared<EndpointNotes>();
  const auto open_noted = [&] {
    auto faulty = std::make_unique<FaultyStore>(
        std::make_unique<TinyStore>(),
        fail_first(9, ErrorCode::kDeadlineExceeded));
    faulty_ = faulty.get();
    store_ = std::make_unique<RetryingStore>(std::move(faulty), options, 1,
                                             &metrics_, notes);
  };
  open_noted();

  const auto result = read();
  const auto listed = store_->list({.prefix = "k"}, {});

  ASSERT_FALSE(result);
  ASSERT_FALSE(listed);
  for (const Error& error : {result.error(), listed.error()}) {
    EXPECT_EQ(error.code(), ErrorCode::kDeadlineExceeded);
    EXPECT_THAT(error.message(), HasSubstr("no answer to 1 attempt"));
    EXPECT_THAT(error.message(), HasSubstr("firewalls and security groups"));
    EXPECT_THAT(error.message(), ::testing::Not(HasSubstr("AWS_MAX_ATTEMPTS")));
  }
  EXPECT_EQ(faulty_->calls(), 2u);

  notes->note_answer(SteadyClock().now());  // Now it is an outage.
  open_noted();
  EXPECT_TRUE(read());
  EXPECT_EQ(faulty_->calls(), 10u);
}

TEST_F(RetryingStoreTest, AnOutageOfSilenceEndsWithAdviceOfItsOwn) {
  open(fail_first(100, ErrorCode::kDeadlineExceeded));

  const auto result = read();

  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().message(), HasSubstr("after 10 attempts"));
  EXPECT_THAT(result.error().message(), HasSubstr("lower max_in_flight"));
}

TEST_F(RetryingStoreTest, RetriesUntilItsPatienceEndsWhateverTheAttempts) {
  RetryOptions options = kQuick;
  options.max_attempts.reset();
  options.patience = std::chrono::milliseconds(60);
  open(fail_first(1'000'000, ErrorCode::kUnavailable), options);
  const TimePoint began = SteadyClock().now();

  const auto result = read();

  ASSERT_FALSE(result);
  EXPECT_GE(SteadyClock().now() - began, std::chrono::milliseconds(60));
  EXPECT_GT(faulty_->calls(), 10u);
  EXPECT_THAT(result.error().message(), HasSubstr("patience= bears longer"));
}

TEST_F(RetryingStoreTest, GivesUpSoonerOnOneThatFailsWhileTheOthersSucceed) {
  RetryOptions options = kQuick;
  options.max_attempts.reset();
  options.lone_patience = std::chrono::milliseconds(30);
  open(
      [](const FaultyCall& call) -> std::optional<Error> {
        if (call.kind != FaultyCall::Kind::kRead) return std::nullopt;
        return Error(ErrorCode::kUnavailable, "HTTP 500");
      },
      options);
  std::jthread others([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      EXPECT_TRUE(store_->stat("k", {}));
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });

  const auto result = read();

  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().message(), HasSubstr("gave up"));
}

/// The service asks for waits until `asked`.
class AskedToWaitTest : public RetryingStoreTest {
 protected:
  void open_asking(FaultyStore::Script script, RetryOptions options = kQuick) {
    auto faulty = std::make_unique<FaultyStore>(std::make_unique<TinyStore>(),
                                                std::move(script));
    faulty_ = faulty.get();
    store_ = std::make_unique<RetryingStore>(std::move(faulty), options, 1,
                                             &metrics_, nullptr,
                                             [this] { return asked.load(); });
  }
  Nanoseconds time_of(const std::function<bool()>& call) {
    const TimePoint began = clock_.now();
    EXPECT_TRUE(call());
    return clock_.now() - began;
  }

  const SteadyClock clock_{};
  std::atomic<TimePoint> asked = TimePoint();
};

TEST_F(AskedToWaitTest, WaitsAsLongAsTheServiceAsks) {
  for (const ErrorCode code :
       {ErrorCode::kThrottled, ErrorCode::kUnavailable}) {
    open_asking(fail_first(1, code));
    asked = clock_.now() + milliseconds(80);
    EXPECT_GE(time_of([this] { return bool(read()); }), milliseconds(80));

    open_asking(fail_first(1, code));
    asked = clock_.now() + milliseconds(80);
    EXPECT_GE(time_of([this] { return bool(store_->stat("k", {})); }),
              milliseconds(80));
  }
  // Each wait began after its 80 ms had; a busy machine is late.
  EXPECT_GE(metrics_.value(Metric::kStoreBackoffNanoseconds), 80'000'000);
}

TEST_F(AskedToWaitTest, DoesNotWaitForWhatIsOverNorAfterSilence) {
  asked = clock_.now() - hours(1);
  open_asking(fail_first(3, ErrorCode::kThrottled));
  EXPECT_LT(time_of([this] { return bool(read()); }), milliseconds(500));

  asked = clock_.now() + hours(1);
  open_asking(fail_first(3, ErrorCode::kDeadlineExceeded));
  EXPECT_LT(time_of([this] { return bool(read()); }), milliseconds(500));
}

TEST_F(AskedToWaitTest, PatienceBoundsTheWait) {
  RetryOptions options = kQuick;
  options.max_attempts.reset();
  options.patience = milliseconds(60);
  open_asking(fail_first(1'000'000, ErrorCode::kThrottled), options);
  asked = clock_.now() + hours(1);

  EXPECT_LT(time_of([this] { return !read(); }), milliseconds(5000));

  EXPECT_EQ(faulty_->calls(), 2u) << "one more, when patience ends";
}

TEST_F(AskedToWaitTest, ASuccessOfAnotherWakesNobodyEarly) {
  RetryOptions options = kSlow;
  options.lone_backoff = milliseconds(1);  // So it is woken by others.
  open_asking(
      [](const FaultyCall& call) -> std::optional<Error> {
        if (call.kind != FaultyCall::Kind::kRead || call.attempt > 0) {
          return std::nullopt;
        }
        return Error(ErrorCode::kThrottled, "SlowDown");
      },
      options);
  std::this_thread::sleep_for(milliseconds(1100));  // An outage: long waits.
  const TimePoint began = clock_.now();
  asked = began + milliseconds(150);
  ReplyBox<Result<void>> box;
  store_->read({.object = {.key = "k"}, .into = std::span(&byte_, 1)}, {},
               [&](Result<void> result) { box.put(std::move(result)); });

  EXPECT_TRUE(store_->stat("k", {}));

  EXPECT_TRUE(box.take());
  EXPECT_GE(clock_.now() - began, milliseconds(150));
  EXPECT_LT(clock_.now() - began, std::chrono::minutes(1));
}

TEST_F(AskedToWaitTest, ThoseThatWereAskedTogetherComeBackOneAfterAnother) {
  std::mutex mutex;
  std::vector<TimePoint> again;
  open_asking([&](const FaultyCall& call) -> std::optional<Error> {
    if (call.attempt == 0) return Error(ErrorCode::kThrottled, "SlowDown");
    const std::lock_guard lock(mutex);
    again.push_back(clock_.now());
    return std::nullopt;
  });
  asked = clock_.now() + milliseconds(800);
  for (int i = 0; i < 50; ++i) {
    store_->read({.object = {.key = "k"}, .into = std::span(&byte_, 1)}, {},
                 [](const Result<void>&) {});
  }
  const auto all_are_back = [&] {
    const std::lock_guard lock(mutex);
    return again.size() == 50;
  };
  while (!all_are_back()) std::this_thread::sleep_for(milliseconds(1));

  // Drawn from a quarter of the wait; kQuick's back-offs end sooner.
  EXPECT_GE(again.front(), asked.load());
  EXPECT_GE(again.back() - again.front(), milliseconds(100));
}

TEST_F(AskedToWaitTest, AStopEndsTheWait) {
  open_asking(fail_first(100, ErrorCode::kThrottled));
  asked = clock_.now() + hours(1);

  EXPECT_EQ(read_and_stop().error().code(), ErrorCode::kCancelled);
}

/// Fails until it is told to answer.
class OutageTest : public RetryingStoreTest {
 protected:
  void begin(RetryOptions options) {
    open(
        [this](const FaultyCall&) -> std::optional<Error> {
          if (is_over) return std::nullopt;
          return Error(ErrorCode::kUnavailable, "down");
        },
        options);
    std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  }
  void read_many(std::size_t count) {
    bytes_.resize(count);
    for (std::byte& byte : bytes_) {
      store_->read({.object = {.key = "k"}, .into = std::span(&byte, 1)}, {},
                   [this](const Result<void>& result) {
                     ++(result ? answered : given_up);
                   });
    }
  }

  std::atomic<bool> is_over = false;
  std::atomic<std::size_t> answered = 0;
  std::atomic<std::size_t> given_up = 0;
  std::vector<std::byte> bytes_;
};

TEST_F(OutageTest, TriesThoseThatFailedInTurnsWhileNothingSucceeds) {
  begin({.base_backoff = microseconds(100), .tries_per_second = 50});
  read_many(200);

  std::this_thread::sleep_for(std::chrono::milliseconds(400));

  // Each once at first; then 20 in all.
  EXPECT_GE(faulty_->calls(), 205u);
  EXPECT_LE(faulty_->calls(), 240u);
  store_.reset();
}

TEST_F(OutageTest, ThoseWhoseTurnDoesNotComeEndWithTheirPatience) {
  RetryOptions options{.base_backoff = microseconds(100),
                       .tries_per_second = 20};
  options.patience = std::chrono::milliseconds(300);
  options.max_attempts.reset();
  begin(options);
  read_many(200);

  std::this_thread::sleep_for(std::chrono::milliseconds(1500));

  // Their turns alone would take ten seconds.
  EXPECT_EQ(given_up, 200u);
  EXPECT_LE(faulty_->calls(), 240u) << "they are not all tried again at once";
}

TEST_F(OutageTest, AFewReadsDoNotWaitForLong) {
  begin({.base_backoff = hours(1),
         .most_backoff = hours(1),
         .lone_backoff = milliseconds(20)});
  read_many(2);

  const SteadyClock clock;
  const TimePoint began = clock.now();
  while (faulty_->calls() < 12 &&
         clock.now() - began < std::chrono::seconds(20)) {
    std::this_thread::sleep_for(milliseconds(1));
  }
  EXPECT_GE(faulty_->calls(), 12u) << "nobody else would notice the end";
  is_over = true;
  while (answered < 2) std::this_thread::yield();
}

TEST_F(OutageTest, TheFirstSuccessWakesTheOthers) {
  begin({.base_backoff = hours(1), .most_backoff = hours(1)});
  read_many(100);
  is_over = true;

  EXPECT_TRUE(store_->stat("k", {}));

  while (answered < 100) std::this_thread::yield();
}

TEST_F(RetryingStoreTest, RepeatsListsWritesAndStats) {
  open(fail_first(2, ErrorCode::kUnavailable));
  EXPECT_TRUE(store_->list({}, {}));
  EXPECT_EQ(faulty_->calls(), 3u);

  open(fail_first(2, ErrorCode::kUnavailable));
  EXPECT_TRUE(store_->write("k", {}, {}));
  EXPECT_EQ(faulty_->calls(), 3u);

  open(fail_first(100, ErrorCode::kUnavailable));
  const auto info = store_->stat("k", {});
  ASSERT_FALSE(info);
  EXPECT_EQ(faulty_->calls(), 10u);
  EXPECT_THAT(info.error().message(), HasSubstr("after 10 attempts"));
}

TEST_F(RetryingStoreTest, WaitsForDescriptorsOnceItHasRead) {
  open([](const FaultyCall& call) -> std::optional<Error> {
    if (call.nth == 0 || call.nth == 4) return std::nullopt;
    return Error(ErrorCode::kResourceExhausted, "no file descriptor is left");
  });

  EXPECT_TRUE(read());
  EXPECT_TRUE(read());
  EXPECT_EQ(faulty_->calls(), 5u);

  const auto gave_up = read();
  ASSERT_FALSE(gave_up);
  EXPECT_EQ(gave_up.error().code(), ErrorCode::kResourceExhausted);
  EXPECT_EQ(faulty_->calls(), 15u) << "kQuick's ten attempts";
}

TEST_F(RetryingStoreTest, EndsABackOffWhenItIsStopped) {
  open(fail_first(100, ErrorCode::kUnavailable), kSlow);

  const auto result = read_and_stop();

  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), ErrorCode::kCancelled);
  EXPECT_THAT(result.error().message(), HasSubstr("a fault of the test"));
}

TEST_F(RetryingStoreTest, EndsTheBackOffOfABlockingCallWhenItIsStopped) {
  open(fail_first(100, ErrorCode::kUnavailable), kSlow);
  std::stop_source source;
  std::jthread stopper([&] {
    while (faulty_->calls() == 0) std::this_thread::yield();
    source.request_stop();
  });

  const auto result = store_->stat("k", source.get_token());

  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), ErrorCode::kCancelled);
}

TEST_F(RetryingStoreTest, AnswersWhatBacksOffWhenItIsDestroyed) {
  open(fail_first(100, ErrorCode::kUnavailable), kSlow);
  std::atomic<int> cancelled = 0;
  for (int i = 0; i < 10; ++i) {
    store_->read({.object = {.key = "k"}, .into = std::span(&byte_, 1)}, {},
                 [&](const Result<void>& result) {
                   if (result.error().code() == ErrorCode::kCancelled) {
                     ++cancelled;
                   }
                 });
  }

  store_.reset();

  EXPECT_EQ(cancelled, 10);
}

TEST(LayersTest, AnswersEachOfManyOnceThroughFaultsAndStops) {
  constexpr std::size_t kReads = 3000;
  Metrics metrics;
  std::vector<std::atomic<int>> answers(kReads);
  std::vector<std::byte> bytes(kReads);
  std::atomic<std::size_t> strange = 0;
  std::stop_source source;
  {
    auto faulty = std::make_unique<FaultyStore>(
        std::make_unique<TinyStore>(),
        fail_share(0.4, ErrorCode::kUnavailable, /*seed=*/7));
    auto paced = std::make_unique<PacedStore>(std::move(faulty), &metrics,
                                              std::make_shared<RequestPace>());
    auto retrying = std::make_unique<RetryingStore>(
        std::move(paced),
        RetryOptions{.max_attempts = 40,
                     .base_backoff = microseconds(10),
                     .most_backoff = microseconds(300)},
        3, &metrics);
    LimitedStore store(std::move(retrying), 8, &metrics);
    std::latch answered(kReads);
    for (std::size_t i = 0; i < kReads; ++i) {
      if (i == kReads * 9 / 10) source.request_stop();
      const bool may_stop = i % 3 == 0;
      store.read({.object = {.key = "k"}, .into = std::span(&bytes[i], 1)},
                 may_stop ? source.get_token() : std::stop_token(),
                 [&, i, may_stop](const Result<void>& result) {
                   if (!result && (!may_stop || result.error().code() !=
                                                    ErrorCode::kCancelled)) {
                     ++strange;
                   }
                   ++answers[i];
                   answered.count_down();
                 });
    }
    answered.wait();
  }

  EXPECT_EQ(strange, 0u);
  for (const auto& count : answers) EXPECT_EQ(count, 1);
  EXPECT_EQ(metrics.value(Metric::kStoreInFlight), 0);
  EXPECT_GT(metrics.value(Metric::kStoreRetries), 1000);
}

TEST(RetryPolicyTest, DrawsEvenlyBelowABoundThatDoubles) {
  RetryPolicy policy({.max_attempts = 3,
                      .base_backoff = Nanoseconds(1000),
                      .most_backoff = Nanoseconds(3500)},
                     /*seed=*/5);

  EXPECT_EQ(policy.longest_backoff(1), Nanoseconds(1000));
  EXPECT_EQ(policy.longest_backoff(2), Nanoseconds(2000));
  EXPECT_EQ(policy.longest_backoff(3), Nanoseconds(3500));
  EXPECT_EQ(policy.longest_backoff(4'000'000'000), Nanoseconds(3500));
  EXPECT_TRUE(policy.allows_another(2));
  EXPECT_FALSE(policy.allows_another(3));

  double sum = 0;
  for (int i = 0; i < 10'000; ++i) {
    const Nanoseconds wait = policy.draw_backoff(2);
    EXPECT_GE(wait, Nanoseconds(0));
    EXPECT_LE(wait, Nanoseconds(2000));
    sum += static_cast<double>(wait.count());
  }
  EXPECT_NEAR(sum / 10'000, 1000, 30);
}

}  // namespace
}  // namespace leat::testing
