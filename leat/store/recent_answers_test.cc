#include "leat/store/recent_answers.h"

#include <gtest/gtest.h>

#include <chrono>

#include "leat/store/endpoint_notes.h"

namespace leat {
namespace {

using std::chrono::seconds;

const TimePoint kNow(std::chrono::hours(5));

TEST(RecentAnswersTest, AServerThatAnsweredOneStoreIsThereForTheNext) {
  RecentAnswers answers;
  EndpointNotes first;
  first.last_answer = answers.of("http://10.0.0.7:9000/data", kNow);
  EXPECT_FALSE(first.is_there(kNow));
  first.note_answer(kNow);

  EndpointNotes next;
  next.last_answer = answers.of("http://10.0.0.7:9000/other", kNow);

  EXPECT_TRUE(next.is_there(kNow + seconds(59)));
}

TEST(RecentAnswersTest, AnAnswerIsForgottenAfterAMinute) {
  RecentAnswers answers;
  const auto last = answers.of("http://host:1", kNow);
  last->note(kNow);

  EXPECT_TRUE(last->is_recent(kNow + seconds(60)));
  EXPECT_FALSE(last->is_recent(kNow + seconds(61)));
}

TEST(RecentAnswersTest, AnOutageDoesNotBecomeAServerThatWasNeverThere) {
  RecentAnswers answers;
  EndpointNotes notes;
  notes.last_answer = answers.of("http://host:1", kNow);
  notes.last_answer->note(kNow);

  EXPECT_TRUE(notes.is_there(kNow + seconds(50)));
  EXPECT_TRUE(notes.is_there(kNow + seconds(300))) << "it is ridden out";
}

TEST(RecentAnswersTest, AnotherProtocolOrPortIsAnotherServer) {
  RecentAnswers answers;
  answers.of("http://host:80/b", kNow)->note(kNow);

  for (const char* other :
       {"https://host:80/b", "http://host:81/b", "http://hos:80/b"}) {
    EXPECT_FALSE(answers.of(other, kNow)->is_recent(kNow)) << other;
  }
}

TEST(RecentAnswersTest, KeepsNoMoreThanIsUsedOrRecent) {
  RecentAnswers answers;
  const auto used = answers.of("http://used:1", kNow);
  answers.of("http://recent:1", kNow)->note(kNow);
  for (int port = 1; port < 1000; ++port) {
    answers.of("http://silent:" + std::to_string(port), kNow);
  }

  EXPECT_EQ(answers.count(), 3u);
  answers.of("http://used:1", kNow + std::chrono::minutes(2));
  EXPECT_EQ(answers.count(), 1u);
}

}  // namespace
}  // namespace leat
