// The deadlines that follow from progress: pure, so without a clock or a
// server.

#include "leat/store/http/reply_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "leat/store/http/address_bench.h"
#include "leat/store/http/first_byte_times.h"

namespace leat {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;

const TimePoint kBegin(seconds(1000));

/// The patience with a read, with the defaults of a client.
ReplyPatience patience_with(std::uint32_t attempt,
                            const FirstByteTimes& times = {}) {
  std::array<std::byte, 8> into{};
  const HttpRequest request{.into = into, .attempt = attempt};
  return patience_for(request, HttpClientOptions{}, times);
}

FirstByteTimes times_of(Nanoseconds usual, Nanoseconds slow, int slow_ones) {
  FirstByteTimes times;
  for (int i = 0; i < 1000; ++i) times.note(i < slow_ones ? slow : usual);
  return times;
}

TEST(FirstByteTimesTest, TellNothingOfAHundredthUntilThereAreAHundred) {
  FirstByteTimes times;
  for (int i = 0; i < 99; ++i) times.note(milliseconds(10));
  EXPECT_FALSE(times.p99());
  times.note(milliseconds(10));
  ASSERT_TRUE(times.p99());
  EXPECT_GE(*times.p99(), milliseconds(10));
  EXPECT_LE(*times.p99(), milliseconds(15));
}

TEST(FirstByteTimesTest, PassOverTheSlowestHundredthAndNoMore) {
  const auto few = times_of(milliseconds(10), seconds(5), 9).p99();
  const auto more = times_of(milliseconds(10), seconds(5), 20).p99();

  EXPECT_LE(*few, milliseconds(15));
  EXPECT_GE(*more, seconds(5));
  EXPECT_LE(*more, milliseconds(7200));
}

TEST(FirstByteTimesTest, FollowAServerThatBecomesSlow) {
  FirstByteTimes times;
  for (int i = 0; i < 100'000; ++i) times.note(milliseconds(1));
  for (int i = 0; i < 50; ++i) times.note(seconds(2));
  EXPECT_GE(*times.p99(), seconds(2));
  for (int i = 0; i < 20'000; ++i) times.note(milliseconds(1));
  EXPECT_LE(*times.p99(), milliseconds(2));
}

TEST(FirstByteTimesTest, TakeAnyTime) {
  FirstByteTimes times;
  for (int i = 0; i < 100; ++i) times.note(Nanoseconds(0));
  EXPECT_LE(*times.p99(), milliseconds(1));
  for (int i = 0; i < 100; ++i) times.note(std::chrono::hours(30));
  EXPECT_GE(*times.p99(), seconds(60));
}

TEST(FirstByteBookTest, KeepsServersApart) {
  FirstByteBook book;
  FirstByteTimes& one = book.of("h", 1);
  EXPECT_NE(&one, &book.of("h", 2));
  EXPECT_NE(&one, &book.of("g", 1));
  EXPECT_EQ(&one, &book.of("h", 1));
}

TEST(ReplyPatienceTest, FollowsTheServersTimesWithinBounds) {
  struct Row {
    Nanoseconds usual, least, most;
  };
  for (const Row& row :
       std::vector<Row>{{milliseconds(10), seconds(3), seconds(3)},
                        {milliseconds(400), seconds(4), milliseconds(5700)},
                        {seconds(20), seconds(30), seconds(30)}}) {
    const auto patience = patience_with(0, times_of(row.usual, row.usual, 0));
    EXPECT_GE(patience.first_byte, row.least);
    EXPECT_LE(patience.first_byte, row.most);
  }
  EXPECT_EQ(patience_with(0).first_byte, seconds(30)) << "nothing is known";
}

TEST(ReplyPatienceTest, DoublesWithEachAttempt) {
  const FirstByteTimes quick = times_of(milliseconds(10), milliseconds(10), 0);

  EXPECT_EQ(patience_with(1, quick).first_byte, seconds(6));
  EXPECT_EQ(patience_with(3, quick).first_byte, seconds(24));
  EXPECT_EQ(patience_with(4'000'000, quick).first_byte, seconds(120));
  EXPECT_EQ(patience_with(1).first_byte, seconds(60));
  EXPECT_EQ(patience_with(0).window, seconds(2));
  EXPECT_EQ(patience_with(0).least_bytes, 2048u);
  EXPECT_EQ(patience_with(2).window, seconds(8));
  EXPECT_EQ(patience_with(9).window, seconds(30));
}

TEST(ReplyPatienceTest, LeavesListingsTheWholeTime) {
  const auto patience =
      patience_for(HttpRequest{}, HttpClientOptions{},
                   times_of(milliseconds(10), milliseconds(10), 0));
  EXPECT_EQ(patience.first_byte, seconds(30));
  EXPECT_EQ(patience.window, seconds(30));
}

/// Checks in time; the time at which the reply is given up, since `begin`.
class Watched {
 public:
  explicit Watched(const ReplyPatience& patience) {
    watch_.open(patience, link_, kBegin);
  }
  /// Brings `bytes` at each of `times` moments, `every` apart. Returns when it
  /// was given up, if it was.
  std::optional<Nanoseconds> receive(std::size_t bytes, Nanoseconds every,
                                     int times) {
    for (int i = 0; i < times; ++i) {
      if (const auto over = wait(every)) return over;
      watch_.received(bytes, now_);
    }
    return std::nullopt;
  }
  std::optional<Nanoseconds> wait(Nanoseconds time) {
    const TimePoint until = now_ + time;
    while (watch_.deadline() <= until) {
      now_ = watch_.deadline();
      if (auto said = watch_.check(now_)) {
        said_ = *said;
        return now_ - kBegin;
      }
    }
    now_ = until;
    return std::nullopt;
  }
  const std::string& said() const { return said_; }
  LinkRate& link() { return link_; }
  ReplyWatch& watch() { return watch_; }
  TimePoint now() const { return now_; }

 private:
  LinkRate link_{seconds(2)};
  ReplyWatch watch_;
  TimePoint now_ = kBegin;
  std::string said_;
};

TEST(ReplyWatchTest, EndsAByteASecondWithinThreeSeconds) {
  Watched reply(patience_with(0));

  const auto over = reply.receive(1, seconds(1), 100);

  ASSERT_TRUE(over);
  EXPECT_LE(*over, seconds(3));
  EXPECT_THAT(reply.said(), AllOf(HasSubstr("too slow"), HasSubstr(" bytes"),
                                  HasSubstr("2 s"), HasSubstr("in all")));
}

TEST(ReplyWatchTest, EndsAReplyThatDriesUpWithinThreeSeconds) {
  Watched reply(patience_with(0));
  ASSERT_FALSE(reply.receive(100'000, milliseconds(10), 1000));

  const auto over = reply.wait(std::chrono::hours(1));

  ASSERT_TRUE(over);
  EXPECT_LE(*over - seconds(10), seconds(3));
}

TEST(ReplyWatchTest, LeavesASlowLinkAlone) {
  // 64 KB a second, 4 KB a second, and 64 KB each 1.9 s.
  EXPECT_FALSE(Watched(patience_with(0)).receive(640, milliseconds(10), 9999));
  EXPECT_FALSE(Watched(patience_with(0)).receive(400, milliseconds(100), 999));
  EXPECT_FALSE(
      Watched(patience_with(0)).receive(65536, milliseconds(1900), 99));
}

/// When a reply of `bytes` every 100 ms is given up, beside 50 of `others`
/// each.
std::optional<Nanoseconds> beside_others(std::size_t bytes,
                                         std::size_t others) {
  Watched reply(patience_with(0));
  for (int i = 0; i < 50; ++i) reply.link().begin();
  for (int i = 0; i < 300; ++i) {
    reply.link().received(50 * others, reply.now());
    if (const auto over = reply.receive(bytes, milliseconds(100), 1)) {
      return over;
    }
  }
  return std::nullopt;
}

TEST(ReplyWatchTest, DoesNotBlameAReplyForALinkThatManyShare) {
  // 300 bytes a second each: a link of 15 KB a second.
  EXPECT_FALSE(beside_others(30, 30));
  EXPECT_FALSE(beside_others(10, 30));
  // And 1 KB a second beside 1 MB.
  EXPECT_FALSE(beside_others(110, 100'000));

  ASSERT_TRUE(beside_others(30, 100'000)) << "the others are quick";
  EXPECT_LE(*beside_others(30, 100'000), seconds(3));
  ASSERT_TRUE(beside_others(0, 30)) << "nothing comes";
  ASSERT_TRUE(beside_others(1, 1)) << "whatever the others do";
}

TEST(ReplyWatchTest, ServesASlowServerInTheEnd) {
  const auto serves = [](std::uint32_t attempt) {
    // Ten seconds of silence in the middle of a body.
    return !Watched(patience_with(attempt)).receive(65536, seconds(10), 2);
  };
  EXPECT_FALSE(serves(0));
  EXPECT_FALSE(serves(1));
  EXPECT_TRUE(serves(3));
}

TEST(ReplyWatchTest, SaysHowLateTheFirstByteIs) {
  const FirstByteTimes quick = times_of(milliseconds(10), milliseconds(10), 0);
  Watched known(patience_with(0, quick));
  Watched unknown(patience_with(0));

  EXPECT_EQ(known.wait(seconds(100)), seconds(3));
  EXPECT_EQ(unknown.wait(seconds(100)), seconds(30));

  EXPECT_THAT(known.said(),
              AllOf(HasSubstr("no byte of a reply came within 3 s"),
                    HasSubstr("99 of 100 replies begin within")));
  EXPECT_THAT(unknown.said(), HasSubstr("within 30 s of the request"));
}

TEST(ReplyWatchTest, CountsFromTheEndOfTheRequest) {
  Watched reply(patience_with(0));
  ASSERT_FALSE(reply.wait(seconds(29)));
  reply.watch().sent(reply.now());
  ASSERT_FALSE(reply.wait(seconds(29)));
  reply.watch().received(1, reply.now());
  EXPECT_EQ(reply.watch().until_first_byte(), seconds(29));
  reply.watch().sent(reply.now() + seconds(1));
  EXPECT_EQ(reply.watch().until_first_byte(), seconds(29));
}

TEST(ReplyWatchTest, DoesNotBlameTheServerForOurOwnPause) {
  Watched reply(patience_with(0));
  ASSERT_FALSE(reply.receive(10'000, milliseconds(100), 20));
  ReplyWatch& watch = reply.watch();

  // Nobody asked for an hour, while the process was stopped.
  const TimePoint back = reply.now() + std::chrono::hours(1);

  EXPECT_FALSE(watch.check(back));
  EXPECT_EQ(watch.deadline(), back + milliseconds(500));
}

TEST(AddressBenchTest, ForgetsAfterAWhile) {
  AddressBench bench;
  bench.put("10.0.0.1", 80, kBegin);

  EXPECT_TRUE(bench.has("10.0.0.1", 80, kBegin));
  EXPECT_FALSE(bench.has("10.0.0.1", 81, kBegin));
  EXPECT_FALSE(bench.has("10.0.0.2", 80, kBegin));
  EXPECT_FALSE(bench.has("10.0.0.1", 80, kBegin + AddressBench::kFor));
  bench.put("10.0.0.1", 80, kBegin + seconds(1));
  EXPECT_TRUE(bench.has("10.0.0.1", 80, kBegin + AddressBench::kFor));
}

}  // namespace
}  // namespace leat
