#include "leat/store/layers/silence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace leat {
namespace {

using ::testing::HasSubstr;

class SilenceTest : public ::testing::Test {
 protected:
  Silence::Options options(Nanoseconds say_every) {
    return {.name = "s3://bucket/",
            .max_attempts = 10,
            .say_every = say_every,
            .say = [this](bool is_trouble, const std::string& text) {
              const MutexLock lock(mutex_);
              said_.emplace_back(is_trouble, text);
              changed_.notify_all();
            }};
  }

  /// The line after those that were heard; waits for it.
  std::pair<bool, std::string> next() {
    MutexLock lock(mutex_);
    while (said_.size() <= heard_) changed_.wait(lock);
    return said_[heard_++];
  }
  std::size_t said() {
    const MutexLock lock(mutex_);
    return said_.size();
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::vector<std::pair<bool, std::string>> said_ LEAT_GUARDED_BY(mutex_);
  std::size_t heard_ LEAT_GUARDED_BY(mutex_) = 0;
};

TEST_F(SilenceTest, SaysWhatIsSilentAndWhyAndThatItAnswersAgain) {
  std::optional<Silence> silence;
  TimerQueue timers;
  silence.emplace(options(std::chrono::milliseconds(1)), timers);
  silence->began();
  silence->began();
  EXPECT_THAT(next().second, HasSubstr("nothing has failed yet"));
  silence->failed(Error(ErrorCode::kUnavailable, "Connection refused"), 3);

  std::string said;
  do {
    const auto [is_trouble, text] = next();
    EXPECT_TRUE(is_trouble);
    said = text;
  } while (said.find("refused") == std::string::npos);

  EXPECT_THAT(said,
              HasSubstr("s3://bucket/: no request has been answered for"));
  EXPECT_THAT(said, HasSubstr("2 are under way"));
  EXPECT_THAT(said, HasSubstr("7 of 10 attempts are left"));
  silence->ended(true);
  for (;;) {
    const auto [is_trouble, text] = next();
    if (is_trouble) continue;
    EXPECT_THAT(text, HasSubstr("s3://bucket/ answers again, after"));
    break;
  }
  silence->ended(true);
}

TEST_F(SilenceTest, SaysOfAServerThatHasNeverAnsweredWhatToCheck) {
  const auto notes = std::make_shared<EndpointNotes>();
  std::optional<Silence> silence;
  TimerQueue timers;
  Silence::Options asked = options(std::chrono::milliseconds(1));
  asked.notes = notes;
  silence.emplace(asked, timers);
  silence->began();
  const std::string first = next().second;
  EXPECT_THAT(first, HasSubstr("this server has never answered: check host"));
  EXPECT_THAT(first, ::testing::Not(HasSubstr("The last failure")));
  silence->failed(Error(ErrorCode::kDeadlineExceeded, "timed out"), 1);

  std::string said;
  do said = next().second;
  while (said.find("The last failure: timed out") == std::string::npos);
  EXPECT_THAT(said, HasSubstr("firewalls and security groups"));
  EXPECT_THAT(said, ::testing::Not(HasSubstr("attempts are left")));

  notes->note_answer(SteadyClock().now());
  do said = next().second;
  while (said.find("9 of 10 attempts are left") == std::string::npos);
  EXPECT_THAT(said, ::testing::Not(HasSubstr("never answered")));
  silence->ended(true);
}

TEST_F(SilenceTest, SaysNothingOfWhatAnswers) {
  std::optional<Silence> silence;
  TimerQueue timers;
  silence.emplace(options(std::chrono::hours(1)), timers);
  for (int i = 0; i < 100; ++i) {
    silence->began();
    silence->failed(Error(ErrorCode::kThrottled, "HTTP 503"), 1);
    silence->ended(true);
  }
  EXPECT_EQ(said(), 0u);
}

}  // namespace
}  // namespace leat
