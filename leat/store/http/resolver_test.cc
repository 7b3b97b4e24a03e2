#include "leat/store/http/resolver.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <string_view>
#include <utility>

#include "leat/runtime/log.h"
#include "leat/store/http/host_book.h"
#include "leat/store/http/mailbox.h"
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

/// Collects what is logged.
class LogGuard {
 public:
  LogGuard() {
    lines().clear();
    set_log_sink([](LogLevel level, std::string_view line) {
      lines().emplace_back(level, line);
    });
  }
  ~LogGuard() { set_log_sink(nullptr); }
  LogGuard(const LogGuard&) = delete;
  LogGuard& operator=(const LogGuard&) = delete;

  using Lines = std::vector<std::pair<LogLevel, std::string>>;
  static Lines& lines() {
    static Lines lines;
    return lines;
  }
};

TEST(ResolverTest, ServesTheLastGoodAnswerWhileTheLookupFailsAndSaysSoOnce) {
  const LogGuard log;
  std::atomic<bool> is_down = false;
  Resolver resolver(
      [&](const std::string&) -> Result<std::vector<HostAddress>> {
        if (is_down) return Error(ErrorCode::kUnavailable, "no DNS for 'host'");
        return one_address("1.2.3.4");
      });
  const auto refresh = [&] {
    ReplyBox<Result<HostAnswerRef>> box;
    resolver.refresh("host",
                     [&](Result<HostAnswerRef> a) { box.put(std::move(a)); });
    return box.take();
  };
  ASSERT_TRUE(refresh());

  is_down = true;
  for (int i = 0; i < 3; ++i) {
    const auto stale = refresh();
    ASSERT_TRUE(stale) << stale.error().message();
    EXPECT_EQ((*stale)->addresses.front().text, "1.2.3.4");
    EXPECT_LE((*stale)->fresh_until,
              SteadyClock().now() + Resolver::kKeepStale);
  }
  ASSERT_EQ(log.lines().size(), 1u);
  EXPECT_EQ(log.lines()[0].first, LogLevel::kWarning);
  EXPECT_NE(log.lines()[0].second.find("no DNS for 'host'"), std::string::npos);

  is_down = false;
  ASSERT_TRUE(refresh());
  ASSERT_TRUE(refresh());
  ASSERT_EQ(log.lines().size(), 2u);
  EXPECT_EQ(log.lines()[1].first, LogLevel::kInfo);
}

TEST(HostBookTest, DoesNotWaitForTheRenewalOfAnAnswerThatHasJustExpired) {
  std::atomic<int> asked = 0;
  std::latch may_answer(1);
  Resolver resolver([&](const std::string&) {
    if (++asked > 1) may_answer.wait();
    return one_address("1.2.3.4");
  });
  const auto mailbox = std::make_shared<Mailbox>();
  HostBook book(resolver, mailbox);
  const TransferId one{.slot = 1, .use = 0};
  const TimePoint now = SteadyClock().now();
  ASSERT_EQ(book.addresses_of("host", one, now), nullptr);
  Mailbox::Mail mail;
  while (mail.news.empty()) mailbox->take(mail);
  EXPECT_EQ(book.hear(mail.news.front(), now).size(), 1u);
  const TimePoint expired = book.last_answer("host")->fresh_until;

  EXPECT_NE(book.addresses_of("host", one, expired), nullptr);
  EXPECT_NE(book.addresses_of("host", one, expired + std::chrono::seconds(50)),
            nullptr);
  EXPECT_EQ(book.addresses_of("host", one, expired + std::chrono::minutes(2)),
            nullptr)
      << "too old, without an answer of now";
  EXPECT_EQ(book.last_answer("unknown"), nullptr);
  may_answer.count_down();
}

TEST(HostBookTest, AsksAgainForAHostInDoubtAtMostOnceASecond) {
  std::atomic<int> asked = 0;
  Resolver resolver([&](const std::string&) {
    return one_address(++asked == 1 ? "1.2.3.4" : "5.6.7.8");
  });
  const auto mailbox = std::make_shared<Mailbox>();
  HostBook book(resolver, mailbox);
  const TimePoint now = SteadyClock().now();
  const auto hear_next = [&](TimePoint at) {
    Mailbox::Mail mail;
    while (mail.news.empty()) mailbox->take(mail);
    book.hear(mail.news.front(), at);
  };
  ASSERT_EQ(book.addresses_of("host", {.slot = 1, .use = 0}, now), nullptr);
  hear_next(now);

  book.doubt("host", now + std::chrono::milliseconds(900));
  EXPECT_EQ(asked, 1);
  book.doubt("host", now + std::chrono::seconds(1));
  hear_next(now + std::chrono::seconds(1));

  EXPECT_EQ(book.last_answer("host")->addresses.front().text, "5.6.7.8");
  EXPECT_EQ(asked, 2);
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
