#include "leat/serve/event_loop.h"

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <utility>

namespace leat {
namespace {

/// Then a handler gets its turn, however much is due.
constexpr Nanoseconds kMostTurn = std::chrono::milliseconds(5);

}  // namespace

void EventLoop::at(TimePoint due, std::shared_ptr<Delayed> task) {
  waiting_.push_back({due, next_number_++, std::move(task)});
  std::push_heap(waiting_.begin(), waiting_.end(), Later());
  set_alarm();
}

void EventLoop::set_alarm() {
  if (waiting_.empty() || waiting_.front().due >= alarm_at_) return;
  alarm_at_ = waiting_.front().due;
  alarm_.expires_at(alarm_at_);
  alarm_.async_wait([this](const boost::system::error_code& error) {
    // Wakes the loop, which looks at what is due after every handler.
    if (!error) alarm_at_ = TimePoint::max();
  });
}

void EventLoop::run_due() {
  if (waiting_.empty()) return;
  const TimePoint end = SteadyClock().now() + kMostTurn;
  call_due(end);
  for (std::size_t i = 0; i < called_.size(); ++i) {
    called_[i]->after_due();
    call_due(end);
  }
  called_.clear();
  set_alarm();
}

/// Calls what is due by now, but not what becomes due after `end`.
void EventLoop::call_due(TimePoint end) {
  while (!waiting_.empty() &&
         waiting_.front().due <= std::min(end, SteadyClock().now())) {
    std::pop_heap(waiting_.begin(), waiting_.end(), Later());
    called_.push_back(std::move(waiting_.back().task));
    waiting_.pop_back();
    called_.back()->on_due();
  }
}

void EventLoop::run() {
  const auto stay = boost::asio::make_work_guard(context_);
  while (context_.run_one() != 0) run_due();
}

}  // namespace leat
