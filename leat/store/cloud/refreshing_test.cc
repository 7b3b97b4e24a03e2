#include "leat/store/cloud/refreshing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <future>
#include <thread>

#include "leat/store/cloud/node_turn.h"
#include "leat/store/cloud/testing/link_world.h"
#include "leat/store/reply_box.h"

namespace leat {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

/// Gives what the test put there; each fetch waits until it is let through.
class GatedProvider final : public CredentialProvider {
 public:
  std::string name() const override { return "a test"; }
  bool is_local() const override { return false; }

  Result<CredentialAnswer> fetch(std::stop_token stop) override {
    MutexLock lock(mutex_);
    ++begun_;
    changed_.notify_all();
    changed_.wait(lock, stop, [this]() LEAT_NO_THREAD_SAFETY_ANALYSIS {
      return !answers_.empty();
    });
    if (answers_.empty()) return Error(ErrorCode::kCancelled, "stopped");
    Result<CredentialAnswer> answer = std::move(answers_.front());
    answers_.erase(answers_.begin());
    return answer;
  }

  void give(Result<CredentialAnswer> answer) {
    const MutexLock lock(mutex_);
    answers_.push_back(std::move(answer));
    changed_.notify_all();
  }
  void give(std::string name, std::optional<TimePoint> expires_at) {
    give(CredentialAnswer{
        TimedCredentials{{std::move(name), "S", "T"}, expires_at}});
  }
  void wait_until_begun(int fetches) {
    MutexLock lock(mutex_);
    while (begun_ < fetches) changed_.wait(lock);
  }
  int begun() const {
    const MutexLock lock(mutex_);
    return begun_;
  }

 private:
  mutable Mutex mutex_;
  CondVar changed_;
  int begun_ LEAT_GUARDED_BY(mutex_) = 0;
  std::vector<Result<CredentialAnswer>> answers_ LEAT_GUARDED_BY(mutex_);
};

class RefreshingTest : public ::testing::Test {
 protected:
  RefreshingTest() {
    RefreshingCredentials::Options options;
    options.provider = provider_;
    options.clock = clock_;
    credentials_ = std::make_unique<RefreshingCredentials>(std::move(options));
  }

  std::string wait() {
    const auto got = credentials_->wait({});
    return got ? (*got)->access_key_id : got.error().message();
  }
  /// Until what a fetch brought is what current() gives.
  void wait_for(const std::string& name) {
    while (true) {
      const auto now = credentials_->current();
      if (now && now->access_key_id == name) return;
      std::this_thread::yield();
    }
  }

  std::shared_ptr<GatedProvider> provider_ = std::make_shared<GatedProvider>();
  std::shared_ptr<FakeClock> clock_ = std::make_shared<FakeClock>();
  std::unique_ptr<RefreshingCredentials> credentials_;
};

TEST_F(RefreshingTest, OneFetchAnswersAllWhoWait) {
  constexpr int kWaiting = 50;
  std::atomic<int> answered = 0;
  for (int i = 0; i < kWaiting; ++i) {
    credentials_->when_ready({}, [&](Result<CredentialsRef> got) {
      EXPECT_EQ((*got)->access_key_id, "A");
      ++answered;
    });
  }
  EXPECT_EQ(answered, 0);

  provider_->give("A", std::nullopt);

  EXPECT_EQ(wait(), "A");
  while (answered != kWaiting) std::this_thread::yield();
  EXPECT_EQ(provider_->begun(), 1);
}

TEST_F(RefreshingTest, RenewsBeforeTheEndWhileRequestsGoOn) {
  provider_->give("A", clock_->now() + 1h);
  EXPECT_EQ(wait(), "A");

  clock_->advance(54min);
  EXPECT_EQ(credentials_->current()->access_key_id, "A");
  EXPECT_EQ(provider_->begun(), 1) << "six minutes are left";
  clock_->advance(2min);
  EXPECT_EQ(credentials_->current()->access_key_id, "A");
  provider_->wait_until_begun(2);
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(credentials_->current()->access_key_id, "A")
        << "nobody waits while they are good";
  }
  provider_->give("B", clock_->now() + 1h);

  wait_for("B");
  EXPECT_EQ(provider_->begun(), 2);
}

TEST_F(RefreshingTest, NeverGivesCredentialsThatHaveEnded) {
  provider_->give("A", clock_->now() + 1h);
  EXPECT_EQ(wait(), "A");

  clock_->advance(1h - 10s);

  EXPECT_EQ(credentials_->current(), nullptr);
  provider_->give("B", clock_->now() + 1h);
  EXPECT_EQ(wait(), "B");
}

TEST_F(RefreshingTest, ThoseThatCameTooLateAreAnError) {
  provider_->give("A", clock_->now() - 1s);

  EXPECT_THAT(wait(), HasSubstr("ended 1 s ago"));
}

TEST_F(RefreshingTest, AFailureIsToldToAllAndNotRepeatedAtOnce) {
  provider_->give(Error(ErrorCode::kUnavailable, "down"));
  EXPECT_EQ(wait(), "down");
  EXPECT_EQ(wait(), "down");
  EXPECT_EQ(provider_->begun(), 1) << "within the pause";

  clock_->advance(1s);
  provider_->give("A", std::nullopt);
  EXPECT_EQ(wait(), "A");
}

TEST_F(RefreshingTest, AFailedRenewalDisturbsNobodyWhileTheOldOnesAreGood) {
  provider_->give("A", clock_->now() + 1h);
  EXPECT_EQ(wait(), "A");
  clock_->advance(56min);
  provider_->give(Error(ErrorCode::kPermissionDenied, "down"));

  EXPECT_EQ(wait(), "A");
  provider_->wait_until_begun(2);
  EXPECT_EQ(wait(), "A");

  // The pause begins when the failure is noted, at a time that is not ours.
  provider_->give("B", clock_->now() + 24h * 365);
  while (provider_->begun() < 3) {
    clock_->advance(100ms);
    (void)credentials_->current();
    std::this_thread::yield();
  }
  wait_for("B");
}

TEST_F(RefreshingTest, RefusedOnesAreFetchedAgainOnce) {
  provider_->give("A", clock_->now() + 1h);
  EXPECT_EQ(wait(), "A");
  const auto first = credentials_->current();

  EXPECT_TRUE(credentials_->reject(first));
  EXPECT_EQ(credentials_->current(), nullptr);
  EXPECT_TRUE(credentials_->reject(first)) << "newer ones are on their way";
  provider_->give("B", clock_->now() + 1h);
  EXPECT_EQ(wait(), "B");
  EXPECT_EQ(provider_->begun(), 2);
  EXPECT_FALSE(credentials_->reject(credentials_->current()));
  EXPECT_EQ(wait(), "B");
}

TEST_F(RefreshingTest, EachRotationIsFollowedAndNoRefusalTwiceAMinute) {
  provider_->give("A", std::nullopt);
  EXPECT_EQ(wait(), "A");
  int fetches = 1;
  for (const char* next : {"B", "C", "D"}) {
    EXPECT_TRUE(credentials_->reject(credentials_->current())) << next;
    provider_->give(next, std::nullopt);
    EXPECT_EQ(wait(), next);
    EXPECT_EQ(provider_->begun(), ++fetches);

    clock_->advance(59s);
    EXPECT_FALSE(credentials_->reject(credentials_->current()))
        << "they never were good";
    EXPECT_EQ(wait(), next);
    clock_->advance(2s);
  }
  EXPECT_EQ(provider_->begun(), 4);
}

TEST_F(RefreshingTest, TheSameAgainAfterARefusalIsAnError) {
  provider_->give("A", std::nullopt);
  EXPECT_EQ(wait(), "A");
  EXPECT_TRUE(credentials_->reject(credentials_->current()));
  provider_->give("A", std::nullopt);

  EXPECT_THAT(wait(), HasSubstr("gives the same"));
}

TEST_F(RefreshingTest, WhoWaitsCanBeStoppedAndDestructionStopsTheRest) {
  std::stop_source stop;
  ReplyBox<Result<CredentialsRef>> stopped;
  ReplyBox<Result<CredentialsRef>> left;
  credentials_->when_ready(stop.get_token(), [&](Result<CredentialsRef> got) {
    stopped.put(std::move(got));
  });
  credentials_->when_ready(
      {}, [&](Result<CredentialsRef> got) { left.put(std::move(got)); });
  provider_->wait_until_begun(1);

  stop.request_stop();

  EXPECT_EQ(stopped.take().error().code(), ErrorCode::kCancelled);
  EXPECT_EQ(credentials_->wait(stop.get_token()).error().code(),
            ErrorCode::kCancelled);
  credentials_.reset();
  EXPECT_EQ(left.take().error().code(), ErrorCode::kCancelled);
}

TEST(NodeTurnTest, IsOnesAtATimeAndHoldsNoSecret) {
  leat::testing::LinkWorld world;
  const std::string path = (world.home / "sub" / "turn.lock").string();
  std::optional<NodeTurn> first(NodeTurn::wait(path, 1s, {}));
  EXPECT_TRUE(first->is_held());

  EXPECT_FALSE(NodeTurn::wait(path, 30ms, {}).is_held());
  std::stop_source stop;
  stop.request_stop();
  EXPECT_FALSE(NodeTurn::wait(path, 1h, stop.get_token()).is_held());
  auto second = std::async(std::launch::async, [&] {
    return NodeTurn::wait(path, 1h, {}).is_held();
  });
  first.reset();
  EXPECT_TRUE(second.get());
  EXPECT_EQ(std::filesystem::file_size(path), 0u);
}

TEST(NodeTurnTest, WithoutAFileThereIsNone) {
  EXPECT_FALSE(NodeTurn::wait("", 1h, {}).is_held());
  EXPECT_FALSE(NodeTurn::wait("/proc/nowhere/x", 1h, {}).is_held());
  EXPECT_EQ(node_turn_path(fake_env({})), "");
  EXPECT_EQ(node_turn_path(fake_env({{"HOME", "/h"}})),
            "/h/.cache/leat/credentials.lock");
}

}  // namespace
}  // namespace leat
