// Reads wait in one of three lists, in the order in which they go: stopped
// ones, those sent again, new ones. Each thread that adds a read or ends one
// tries to send. Only one thread sends at a time, and the others leave the
// sending to it. So the order is kept, and an inner store that answers before
// its read() returns makes the loop longer, not the stack deeper.

#include "leat/store/layers/read_queue.h"

#include <utility>

#include "leat/base/check.h"

namespace leat {

/// A read that waits for its turn.
struct ReadQueue::Entry {
  struct OnStop {
    ReadQueue* queue;
    std::weak_ptr<Entry> entry;
    void operator()() const {
      if (const auto still_there = entry.lock()) queue->stopped(still_there);
    }
  };

  Waiting read;
  std::optional<std::stop_callback<OnStop>> on_stop;
  // Guarded by the queue's mutex.
  Entries* in_list = nullptr;
  Entries::iterator place;
  bool is_stopped = false;
};

ReadQueue::~ReadQueue() {
  std::unique_ptr<TimerQueue> timers;  // Joined without the lock.
  {
    const MutexLock lock(mutex_);
    timers = std::move(timers_);
  }
  timers.reset();
  const MutexLock lock(mutex_);
  LEAT_CHECK(new_.empty() && again_.empty() && stopped_.empty());
}

void ReadQueue::add(ReadRequest request, std::stop_token stop, ReadDone done) {
  auto entry = std::make_shared<Entry>();
  entry->read = {std::move(request), std::move(stop), std::move(done),
                 clock_.now()};
  // May run at once; it then only leaves a mark.
  entry->on_stop.emplace(entry->read.stop, Entry::OnStop{this, entry});
  {
    const MutexLock lock(mutex_);
    Entries& list = entry->is_stopped                  ? stopped_
                    : entry->read.request.attempt != 0 ? again_
                                                       : new_;
    entry->in_list = &list;
    entry->place = list.insert(list.end(), entry);
  }
  send_what_may_go();
}

void ReadQueue::stopped(const std::shared_ptr<Entry>& entry) {
  {
    const MutexLock lock(mutex_);
    entry->is_stopped = true;
    if (entry->in_list == nullptr) return;  // Not yet listed, or sent.
    stopped_.splice(stopped_.end(), *entry->in_list, entry->place);
    entry->in_list = &stopped_;
  }
  send_what_may_go();
}

void ReadQueue::change(const std::function<void()>& change) {
  {
    const MutexLock lock(mutex_);
    change();
    // The gate may open earlier now.
    if (timer_ && timers_->cancel(*timer_)) timer_.reset();
  }
  send_what_may_go();
}

void ReadQueue::look(const std::function<void()>& look) const {
  const MutexLock lock(mutex_);
  look();
}

std::shared_ptr<ReadQueue::Entry> ReadQueue::take_next() {
  Entries* list = nullptr;
  if (!stopped_.empty()) {
    list = &stopped_;
  } else if (!again_.empty() || !new_.empty()) {
    if (may_go()) list = !again_.empty() ? &again_ : &new_;
  }
  if (list == nullptr) return nullptr;
  std::shared_ptr<Entry> entry = std::move(list->front());
  list->pop_front();
  entry->in_list = nullptr;
  gate_.passed(entry->read.request, clock_.now());
  return entry;
}

bool ReadQueue::may_go() {
  const TimePoint now = clock_.now();
  const TimePoint opens = gate_.opens_at(now);
  if (opens <= now) return true;
  if (opens == Gate::kNever || timer_) return false;
  if (timers_ == nullptr) timers_ = std::make_unique<TimerQueue>("leat-rate");
  timer_ = timers_->at(opens, [this] {
    {
      const MutexLock lock(mutex_);
      timer_.reset();
    }
    send_what_may_go();
  });
  return false;
}

void ReadQueue::send_what_may_go() {
  MutexLock lock(mutex_);
  if (is_sending_) return;
  is_sending_ = true;
  while (const auto entry = take_next()) {
    lock.unlock();
    entry->on_stop.reset();
    send_(std::move(entry->read), clock_.now());
    lock.lock();
  }
  is_sending_ = false;
}

}  // namespace leat
