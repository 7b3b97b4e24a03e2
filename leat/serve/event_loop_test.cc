#include "leat/serve/event_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/post.hpp>
#include <functional>
#include <string>
#include <utility>

namespace leat {
namespace {

using ::testing::ElementsAre;

struct Noted final : Delayed {
  Noted(std::string its_name, std::vector<std::string>& its_notes)
      : name(std::move(its_name)), notes(its_notes) {}
  void on_due() override { notes.push_back(name); }
  void after_due() override { notes.push_back("after " + name); }
  const std::string name;
  std::vector<std::string>& notes;
};

TEST(EventLoopTest, CallsInTheOrderOfTheTimesAndLeavesTheRestForLater) {
  EventLoop loop;
  std::vector<std::string> notes;
  const TimePoint past = SteadyClock().now() - std::chrono::seconds(1);

  boost::asio::post(loop.context(), [&] {
    loop.at(past + Nanoseconds(2), std::make_shared<Noted>("second", notes));
    loop.at(past + Nanoseconds(1), std::make_shared<Noted>("first", notes));
    loop.at(past + Nanoseconds(2), std::make_shared<Noted>("third", notes));
  });
  boost::asio::post(loop.context(), [&] {
    notes.push_back("handler");
    loop.context().stop();
  });
  loop.run();

  EXPECT_THAT(notes, ElementsAre("first", "second", "third", "after first",
                                 "after second", "after third", "handler"));
}

TEST(EventLoopTest, CallsNothingBeforeItsTime) {
  struct Stop final : Delayed {
    explicit Stop(EventLoop& its_loop) : loop(its_loop) {}
    void on_due() override { called = SteadyClock().now(); }
    void after_due() override { loop.context().stop(); }
    EventLoop& loop;
    TimePoint called{};
  };
  EventLoop loop;
  const auto stop = std::make_shared<Stop>(loop);
  const TimePoint due = SteadyClock().now() + std::chrono::milliseconds(20);

  loop.at(due, stop);
  loop.run();

  EXPECT_GE(stop->called, due);
}

TEST(EventLoopTest, GivesHandlersATurnHoweverMuchIsDue) {
  // Due again and again, until a handler says that it got its turn.
  struct Again final : Delayed, std::enable_shared_from_this<Again> {
    explicit Again(EventLoop& its_loop) : loop(its_loop) {}
    void on_due() override {}
    void after_due() override {
      if (goes_on) loop.at(SteadyClock().now(), shared_from_this());
    }
    EventLoop& loop;
    bool goes_on = true;
  };
  EventLoop loop;
  const auto again = std::make_shared<Again>(loop);
  bool had_its_turn = false;

  boost::asio::post(loop.context(),
                    [&] { loop.at(SteadyClock().now(), again); });
  boost::asio::post(loop.context(), [&] {
    had_its_turn = true;
    again->goes_on = false;
    loop.context().stop();
  });
  loop.run();

  EXPECT_TRUE(had_its_turn);
}

TEST(EventLoopTest, ForgetsWhatItIsToldTo) {
  EventLoop loop;
  std::vector<std::string> notes;
  const auto task = std::make_shared<Noted>("never", notes);
  loop.at(SteadyClock().now() + std::chrono::hours(1), task);
  ASSERT_EQ(task.use_count(), 2);

  loop.drop_waiting();

  EXPECT_EQ(task.use_count(), 1);
  EXPECT_TRUE(notes.empty());
}

}  // namespace
}  // namespace leat
