// Reads wait in one of three lists, in the order in which they go: stopped
// ones, those sent again, new ones. Each thread that adds a read or ends one
// tries to send. Only one thread sends at a time, and the others leave the
// sending to it. So the order is kept, and an inner store that answers before
// its read() returns makes the loop longer, not the stack deeper.

#include "leat/store/layers/limited_store.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "leat/base/check.h"

namespace leat {
namespace {

constexpr Nanoseconds kMostSaved = std::chrono::milliseconds(100);

}  // namespace

/// A read that waits for its turn.
struct LimitedStore::Waiting {
  struct OnStop {
    LimitedStore* store;
    std::weak_ptr<Waiting> read;
    void operator()() const {
      if (const auto still_there = read.lock()) {
        store->stopped_waiting(still_there);
      }
    }
  };

  ReadRequest request;
  std::stop_token stop;
  ReadDone done;
  TimePoint asked;
  std::optional<std::stop_callback<OnStop>> on_stop;
  // Guarded by the store's mutex.
  WaitingList* in_list = nullptr;
  WaitingList::iterator place;
  bool is_stopped = false;
};

LimitedStore::LimitedStore(std::unique_ptr<Store> inner, std::size_t window,
                           Metrics* metrics,
                           std::shared_ptr<const EndpointNotes> notes)
    : StoreWrapper(std::move(inner)),
      metrics_(metrics),
      notes_(std::move(notes)),
      window_(window) {
  LEAT_CHECK(window > 0);
  if (notes_ != nullptr) polite_.emplace(*notes_);
}

LimitedStore::~LimitedStore() {
  std::unique_ptr<TimerQueue> timers;  // Joined without the lock.
  {
    const MutexLock lock(mutex_);
    timers = std::move(timers_);
  }
  timers.reset();
  const MutexLock lock(mutex_);
  LEAT_CHECK(in_flight_ == 0);
  LEAT_CHECK(new_.empty() && again_.empty() && stopped_.empty());
}

void LimitedStore::set_window(std::size_t window) {
  LEAT_CHECK(window > 0);
  {
    const MutexLock lock(mutex_);
    window_ = window;
  }
  send_what_may_go();
}

std::size_t LimitedStore::window() const {
  const MutexLock lock(mutex_);
  return window_;
}

void LimitedStore::set_bytes_per_second(std::optional<std::uint64_t> rate) {
  LEAT_CHECK(rate != std::uint64_t{0});
  {
    const MutexLock lock(mutex_);
    if (rate == bytes_per_second_) return;
    bytes_per_second_ = rate;
    paid_until_ = clock_.now();
    if (rate && timers_ == nullptr) {
      timers_ = std::make_unique<TimerQueue>("leat-rate");
    }
    if (timer_ && timers_->cancel(*timer_)) timer_.reset();
  }
  send_what_may_go();
}

void LimitedStore::read(ReadRequest request, std::stop_token stop,
                        ReadDone done) {
  auto read = std::make_shared<Waiting>();
  read->request = std::move(request);
  read->stop = std::move(stop);
  read->done = std::move(done);
  read->asked = clock_.now();
  // May run at once; it then only leaves a mark.
  read->on_stop.emplace(read->stop, Waiting::OnStop{this, read});
  {
    const MutexLock lock(mutex_);
    WaitingList& list = read->is_stopped             ? stopped_
                        : read->request.attempt != 0 ? again_
                                                     : new_;
    read->in_list = &list;
    read->place = list.insert(list.end(), read);
  }
  send_what_may_go();
}

void LimitedStore::stopped_waiting(const std::shared_ptr<Waiting>& read) {
  {
    const MutexLock lock(mutex_);
    read->is_stopped = true;
    if (read->in_list == nullptr) return;  // Not yet listed, or sent.
    stopped_.splice(stopped_.end(), *read->in_list, read->place);
    read->in_list = &stopped_;
  }
  send_what_may_go();
}

std::size_t LimitedStore::most_in_flight() const {
  return polite_ ? std::min(window_, polite_->most()) : window_;
}

std::shared_ptr<LimitedStore::Waiting> LimitedStore::take_next() {
  WaitingList* list = nullptr;
  if (!stopped_.empty()) {
    list = &stopped_;
  } else if (in_flight_ < most_in_flight() && may_send()) {
    list = !again_.empty() ? &again_ : !new_.empty() ? &new_ : nullptr;
  }
  if (list == nullptr) return nullptr;
  std::shared_ptr<Waiting> read = std::move(list->front());
  list->pop_front();
  read->in_list = nullptr;
  ++in_flight_;
  if (!read->is_stopped) spend(read->request.into.size());
  return read;
}

// A read goes as soon as those before it are paid for, however long it is: so
// one that is larger than what can be saved up goes too.
bool LimitedStore::may_send() {
  if (!bytes_per_second_ || (again_.empty() && new_.empty())) return true;
  if (paid_until_ <= clock_.now()) return true;
  if (!timer_) {
    timer_ = timers_->at(paid_until_, [this] {
      {
        const MutexLock lock(mutex_);
        timer_.reset();
      }
      send_what_may_go();
    });
  }
  return false;
}

void LimitedStore::spend(std::uint64_t bytes) {
  if (!bytes_per_second_) return;
  const double seconds =
      static_cast<double>(bytes) / static_cast<double>(*bytes_per_second_);
  paid_until_ = std::max(paid_until_, clock_.now() - kMostSaved) +
                std::chrono::duration_cast<Nanoseconds>(
                    std::chrono::duration<double>(std::min(seconds, 3600.0)));
}

void LimitedStore::send_what_may_go() {
  MutexLock lock(mutex_);
  if (is_sending_) return;
  is_sending_ = true;
  while (const auto read = take_next()) {
    lock.unlock();
    pass_on(read);
    lock.lock();
  }
  is_sending_ = false;
}

void LimitedStore::pass_on(const std::shared_ptr<Waiting>& read) {
  read->on_stop.reset();
  const TimePoint sent = clock_.now();
  if (metrics_ != nullptr) {
    metrics_->add(Metric::kStoreWaitNanoseconds, (sent - read->asked).count());
    metrics_->add(Metric::kStoreReads, 1);
    metrics_->add(Metric::kStoreInFlight, 1);
  }
  const std::uint64_t size_bytes = read->request.into.size();
  inner_->read(std::move(read->request), std::move(read->stop),
               [this, size_bytes, sent,
                done = std::move(read->done)](Result<void> result) {
                 hear(size_bytes, sent, done, std::move(result));
               });
}

void LimitedStore::hear(std::uint64_t size_bytes, TimePoint sent,
                        const ReadDone& done, Result<void> result) {
  if (metrics_ != nullptr) {
    metrics_->add(Metric::kStoreReadNanoseconds, (clock_.now() - sent).count());
    metrics_->add(Metric::kStoreInFlight, -1);
    if (result) {
      metrics_->add(Metric::kStoreReadBytes,
                    static_cast<std::int64_t>(size_bytes));
    } else if (result.error().code() != ErrorCode::kCancelled) {
      metrics_->add(Metric::kStoreReadErrors, 1);
    }
  }
  {
    const MutexLock lock(mutex_);
    --in_flight_;
    if (polite_) polite_->read_ended(clock_.now());
  }
  send_what_may_go();
  done(std::move(result));  // After this the store may be gone.
}

Result<ListPage> LimitedStore::list(const ListRequest& request,
                                    std::stop_token stop) {
  if (metrics_ != nullptr) metrics_->add(Metric::kStoreLists, 1);
  return inner_->list(request, std::move(stop));
}

}  // namespace leat
