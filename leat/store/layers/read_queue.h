// Reads that wait until they may be sent.
#pragma once
#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <optional>

#include "leat/base/clock.h"
#include "leat/base/mutex.h"
#include "leat/runtime/timer_queue.h"
#include "leat/store/store.h"

namespace leat {

/// Decides when the next read may be sent. Threads: one call at a time, under
/// the lock of the queue that asks.
class Gate {
 public:
  virtual ~Gate() = default;
  /// When the next read may go: `now` or earlier, at once; later, then; kNever,
  /// not before a read has ended.
  virtual TimePoint opens_at(TimePoint now) = 0;
  virtual void passed(const ReadRequest& request, TimePoint now) = 0;

  static constexpr TimePoint kNever = TimePoint::max();
};

/// Keeps reads until its gate lets them go: first come, first sent. Reads sent
/// again (`attempt` > 0) go before all new ones, since they were wanted
/// earlier; a read whose `stop` fires while it waits goes at once, past the
/// gate, for the store to refuse.
///
/// Threads: any. `send` runs on a thread that adds a read, pokes or fires a
/// timer, one call at a time, without the lock. Lifetime: aborts if it is
/// destroyed with reads in it. `gate` outlives it.
class ReadQueue {
 public:
  struct Waiting {
    ReadRequest request;
    std::stop_token stop;
    ReadDone done;
    TimePoint asked;
  };
  /// Sends a read at the time that it is told.
  using Send = std::function<void(Waiting, TimePoint now)>;

  ReadQueue(Gate& gate, Send send) : gate_(gate), send_(std::move(send)) {}
  ~ReadQueue();
  ReadQueue(const ReadQueue&) = delete;
  ReadQueue& operator=(const ReadQueue&) = delete;

  void add(ReadRequest request, std::stop_token stop, ReadDone done);
  /// Changes what the gate goes by, under the lock, and sends what may go now.
  void change(const std::function<void()>& change);
  /// Calls `look` under the lock.
  void look(const std::function<void()>& look) const;

 private:
  struct Entry;
  using Entries = std::list<std::shared_ptr<Entry>>;

  void send_what_may_go();
  std::shared_ptr<Entry> take_next() LEAT_REQUIRES(mutex_);
  bool may_go() LEAT_REQUIRES(mutex_);
  void stopped(const std::shared_ptr<Entry>& entry);

  Gate& gate_;
  const Send send_;
  const SteadyClock clock_;

  mutable Mutex mutex_;
  // A thread is in send_what_may_go(), and will see what others add.
  bool is_sending_ LEAT_GUARDED_BY(mutex_) = false;
  Entries again_ LEAT_GUARDED_BY(mutex_);
  Entries new_ LEAT_GUARDED_BY(mutex_);
  Entries stopped_ LEAT_GUARDED_BY(mutex_);
  std::optional<TimerQueue::Id> timer_ LEAT_GUARDED_BY(mutex_);
  // Once a gate has named a time. Its thread ends before the rest dies.
  std::unique_ptr<TimerQueue> timers_ LEAT_GUARDED_BY(mutex_);
};

}  // namespace leat
