#include "leat/store/known_endpoints.h"

#include <gtest/gtest.h>

#include <chrono>

#include "leat/store/endpoint_notes.h"

namespace leat {
namespace {

using std::chrono::seconds;

const TimePoint kNow(std::chrono::hours(5));

TEST(KnownEndpointsTest, AServerThatAnsweredOneStoreIsThereForTheNext) {
  KnownEndpoints endpoints;
  EndpointNotes first;
  first.known = endpoints.of("http://10.0.0.7:9000/data", kNow);
  EXPECT_FALSE(first.is_there(kNow));
  first.note_answer(kNow);

  EndpointNotes next;
  next.known = endpoints.of("http://10.0.0.7:9000/other", kNow);

  EXPECT_TRUE(next.is_there(kNow + seconds(59)));
}

TEST(KnownEndpointsTest, AServerWithFewThreadsHasFewForTheNextStoreToo) {
  KnownEndpoints endpoints;
  EndpointNotes first;
  first.known = endpoints.of("http://host:1/data", kNow);
  EndpointNotes next;
  next.known = endpoints.of("http://host:1/other", kNow);
  EndpointNotes elsewhere;
  elsewhere.known = endpoints.of("http://host:2/data", kNow);

  first.note_crowded(kNow);

  EXPECT_TRUE(next.is_crowded(kNow + std::chrono::minutes(9)));
  EXPECT_FALSE(next.is_crowded(kNow + std::chrono::minutes(10)));
  EXPECT_FALSE(elsewhere.is_crowded(kNow));
}

TEST(KnownEndpointsTest, AnAnswerIsForgottenAfterAMinute) {
  KnownEndpoints endpoints;
  const auto last = endpoints.of("http://host:1", kNow);
  last->note_answer(kNow);

  EXPECT_TRUE(last->answered_recently(kNow + seconds(60)));
  EXPECT_FALSE(last->answered_recently(kNow + seconds(61)));
}

TEST(KnownEndpointsTest, AnOutageDoesNotBecomeAServerThatWasNeverThere) {
  KnownEndpoints endpoints;
  EndpointNotes notes;
  notes.known = endpoints.of("http://host:1", kNow);
  notes.known->note_answer(kNow);

  EXPECT_TRUE(notes.is_there(kNow + seconds(50)));
  EXPECT_TRUE(notes.is_there(kNow + seconds(300))) << "it is ridden out";
}

TEST(KnownEndpointsTest, AnotherProtocolOrPortIsAnotherServer) {
  KnownEndpoints endpoints;
  endpoints.of("http://host:80/b", kNow)->note_answer(kNow);

  for (const char* other :
       {"https://host:80/b", "http://host:81/b", "http://hos:80/b"}) {
    EXPECT_FALSE(endpoints.of(other, kNow)->answered_recently(kNow)) << other;
  }
}

TEST(KnownEndpointsTest, KeepsNoMoreThanIsUsedOrRecent) {
  KnownEndpoints endpoints;
  const auto used = endpoints.of("http://used:1", kNow);
  endpoints.of("http://recent:1", kNow)->note_answer(kNow);
  for (int port = 1; port < 1000; ++port) {
    endpoints.of("http://silent:" + std::to_string(port), kNow);
  }

  EXPECT_EQ(endpoints.count(), 3u);
  endpoints.of("http://used:1", kNow + std::chrono::minutes(2));
  EXPECT_EQ(endpoints.count(), 1u);
}

}  // namespace
}  // namespace leat
