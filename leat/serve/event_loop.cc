#include "leat/serve/event_loop.h"

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <utility>

namespace leat {

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
  const TimePoint now = SteadyClock().now();
  // Ends, because nobody asks for a time that has passed.
  while (!waiting_.empty() && waiting_.front().due <= now) {
    std::pop_heap(waiting_.begin(), waiting_.end(), Later());
    const std::shared_ptr<Delayed> task = std::move(waiting_.back().task);
    waiting_.pop_back();
    task->on_due();
  }
  set_alarm();
}

void EventLoop::run() {
  const auto stay = boost::asio::make_work_guard(context_);
  while (context_.run_one() != 0) run_due();
}

}  // namespace leat
