// One thread's worth of a server: an asio context and the delays upon it.
// Internal to serve/: includes asio.
#pragma once
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <memory>
#include <vector>

#include "leat/base/clock.h"

namespace leat {

/// Something to be done at a time. Threads: the loop's.
class Delayed {
 public:
  virtual ~Delayed() = default;
  /// The time has come: does what must not be late, and nothing else.
  virtual void on_due() = 0;
  /// Called once after each on_due(), when nothing else is due and before any
  /// handler runs: does the rest.
  virtual void after_due() = 0;
};

/// Runs handlers, and delayed things as soon as they are due.
///
/// Asio looks at its timers only when it polls for events, up to 128 handlers
/// apart. This one looks after every handler, so under load a delay is late by
/// one handler (some ten microseconds) and not by a hundred. If several things
/// are due, each waits only for the on_due() of the others; after_due() comes
/// later.
///
/// Threads:  the one that calls run(), but for context().
/// Lifetime: destruction drops what is not yet due.
class EventLoop {
 public:
  EventLoop() : context_(1), alarm_(context_) {}
  ~EventLoop() { waiting_.clear(); }
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  boost::asio::io_context& context() { return context_; }

  /// Calls `task` at `due` or soon after, never before. Holds it until then.
  void at(TimePoint due, std::shared_ptr<Delayed> task);

  /// Runs until context().stop().
  void run();

  /// Forgets what is not yet due.
  void drop_waiting() { waiting_.clear(); }

 private:
  struct Entry {
    TimePoint due;
    std::uint64_t number;  // Equal times run in the order they came.
    std::shared_ptr<Delayed> task;
  };
  struct Later {
    bool operator()(const Entry& a, const Entry& b) const {
      return a.due != b.due ? a.due > b.due : a.number > b.number;
    }
  };

  void run_due();
  void call_due(TimePoint end);
  void set_alarm();

  boost::asio::io_context context_;
  boost::asio::steady_timer alarm_;
  TimePoint alarm_at_ = TimePoint::max();
  std::vector<Entry> waiting_;  // A heap: the front is due first.
  std::uint64_t next_number_ = 0;
  std::vector<std::shared_ptr<Delayed>> called_;  // And not yet after_due().
};

}  // namespace leat
