#include "leat/store/http/resolver.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>

#include "leat/store/reply_box.h"

namespace leat {
namespace {

Result<std::vector<HostAddress>> one_address(const std::string& text) {
  std::vector<HostAddress> addresses(1);
  addresses.front().text = text;
  return addresses;
}

Result<HostAnswerRef> ask(Resolver& resolver, const std::string& name) {
  ReplyBox<Result<HostAnswerRef>> box;
  resolver.resolve(name,
                   [&](Result<HostAnswerRef> a) { box.put(std::move(a)); });
  return box.take();
}

TEST(ResolverTest, AsksOnceWhileAnAnswerIsKept) {
  std::atomic<int> asked = 0;
  Resolver resolver([&](const std::string& name) {
    ++asked;
    return one_address(name + "-address");
  });

  const auto first = ask(resolver, "host");
  const auto second = ask(resolver, "host");
  const auto other = ask(resolver, "other");

  ASSERT_TRUE(first);
  ASSERT_TRUE(second);
  ASSERT_TRUE(other);
  EXPECT_EQ((*first)->addresses.front().text, "host-address");
  EXPECT_EQ(*first, *second);
  EXPECT_EQ(asked, 2);
}

TEST(ResolverTest, AnswersAllWhoWaitForOneLookup) {
  std::latch may_answer(1);
  std::atomic<int> asked = 0;
  Resolver resolver([&](const std::string&) {
    may_answer.wait();
    ++asked;
    return one_address("1.2.3.4");
  });
  std::latch answered(10);

  for (int i = 0; i < 10; ++i) {
    resolver.resolve("host", [&](const Result<HostAnswerRef>& answer) {
      EXPECT_TRUE(answer);
      answered.count_down();
    });
  }
  may_answer.count_down();
  answered.wait();

  EXPECT_EQ(asked, 1);
}

TEST(ResolverTest, KeepsAFailureForAMoment) {
  std::atomic<int> asked = 0;
  Resolver resolver(
      [&](const std::string&) -> Result<std::vector<HostAddress>> {
        ++asked;
        return Error(ErrorCode::kUnavailable, "no such host");
      });

  // A second: a busy machine may take as long for the two.
  int asked_in_a_moment = 0;
  Nanoseconds took{};
  do {
    const TimePoint begin = SteadyClock().now();
    EXPECT_FALSE(ask(resolver, "host"));
    const int before = asked;
    EXPECT_FALSE(ask(resolver, "host"));
    asked_in_a_moment = asked - before;
    took = SteadyClock().now() - begin;
  } while (took > std::chrono::milliseconds(900));

  EXPECT_EQ(asked_in_a_moment, 0);
}

TEST(ResolverTest, AsksAgainWhenToldTo) {
  std::atomic<int> asked = 0;
  Resolver resolver(
      [&](const std::string&) { return one_address(std::to_string(++asked)); });
  ASSERT_TRUE(ask(resolver, "host"));
  ReplyBox<Result<HostAnswerRef>> box;

  resolver.refresh("host",
                   [&](Result<HostAnswerRef> a) { box.put(std::move(a)); });

  EXPECT_EQ((*box.take())->addresses.front().text, "2");
}

TEST(ResolverTest, DiesWithoutWaitingForALookupThatHangs) {
  // Both outlive the thread that is left behind.
  static std::latch may_answer(1);
  static std::latch is_asked(1);
  std::atomic<bool> was_answered = false;
  const auto began = std::chrono::steady_clock::now();
  {
    Resolver resolver([](const std::string&) {
      is_asked.count_down();
      may_answer.wait();
      return one_address("late");
    });
    resolver.resolve(
        "host", [&](const Result<HostAnswerRef>&) { was_answered = true; });
    is_asked.wait();
  }
  const auto took = std::chrono::steady_clock::now() - began;
  may_answer.count_down();

  EXPECT_LT(took, std::chrono::seconds(5));
  EXPECT_FALSE(was_answered);
}

TEST(ResolverTest, LooksUpThisMachine) {
  const auto addresses = ask_system_for_host("localhost");

  ASSERT_TRUE(addresses) << addresses.error().message();
  EXPECT_FALSE(addresses->empty());
}

TEST(ResolverTest, NamesAHostThatDoesNotExist) {
  const auto addresses = ask_system_for_host("no-such-host.invalid");

  ASSERT_FALSE(addresses);
  EXPECT_EQ(addresses.error().code(), ErrorCode::kUnavailable);
  EXPECT_NE(addresses.error().message().find("'no-such-host.invalid'"),
            std::string::npos);
}

}  // namespace
}  // namespace leat
