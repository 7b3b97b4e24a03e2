// A store that keeps the reads in flight within a window, and their bytes
// within a rate.
#pragma once
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>

#include "leat/base/clock.h"
#include "leat/base/mutex.h"
#include "leat/metrics/metrics.h"
#include "leat/runtime/timer_queue.h"
#include "leat/store/layers/polite_window.h"
#include "leat/store/store_wrapper.h"

namespace leat {

/// Lets at most `window` reads be in flight in the inner store and keeps the
/// others, first come, first sent. A read sent again (`attempt` > 0) goes
/// before all new ones, since it was wanted earlier.
///
/// Counts what it sends: kStoreReads, kStoreReadBytes, kStoreReadErrors,
/// kStoreInFlight, kStoreLists, kStoreReadNanoseconds, kStoreWaitNanoseconds. A
/// read whose `stop` fires while it waits is passed on immediately, past the
/// window, for the inner store to refuse. Lists, writes and stats are not
/// limited.
///
/// Threads: any. Lifetime: see Store; aborts if destroyed with reads waiting or
/// in
///           flight. `metrics` may be null, or else outlives the store.
class LimitedStore final : public StoreWrapper {
 public:
  /// With `notes`, fewer may be in flight than the window permits: see
  /// PoliteWindow. REQUIRES: window > 0.
  LimitedStore(std::unique_ptr<Store> inner, std::size_t window,
               Metrics* metrics,
               std::shared_ptr<const EndpointNotes> notes = nullptr);
  ~LimitedStore() override;

  /// Applies to reads sent from now on; those in flight are left alone.
  /// REQUIRES: window > 0.
  void set_window(std::size_t window);
  std::size_t window() const;

  /// The bytes a second that reads may request from now on; nullopt: no limit
  /// but the window. At most a tenth of a second's worth can be saved up.
  /// REQUIRES: more than 0.
  void set_bytes_per_second(std::optional<std::uint64_t> rate);

  void read(ReadRequest request, std::stop_token stop, ReadDone done) override;
  Result<ListPage> list(const ListRequest& request,
                        std::stop_token stop) override;

 private:
  struct Waiting;
  using WaitingList = std::list<std::shared_ptr<Waiting>>;

  void send_what_may_go();
  std::size_t most_in_flight() const LEAT_REQUIRES(mutex_);
  std::shared_ptr<Waiting> take_next() LEAT_REQUIRES(mutex_);
  bool may_send() LEAT_REQUIRES(mutex_);
  void spend(std::uint64_t bytes) LEAT_REQUIRES(mutex_);
  void pass_on(const std::shared_ptr<Waiting>& read);
  void hear(std::uint64_t size_bytes, TimePoint sent, const ReadDone& done,
            Result<void> result);
  void stopped_waiting(const std::shared_ptr<Waiting>& read);

  Metrics* const metrics_;

  const std::shared_ptr<const EndpointNotes> notes_;

  mutable Mutex mutex_;
  std::optional<PoliteWindow> polite_ LEAT_GUARDED_BY(mutex_);
  std::size_t window_ LEAT_GUARDED_BY(mutex_);
  std::size_t in_flight_ LEAT_GUARDED_BY(mutex_) = 0;
  // A thread is in send_what_may_go(), and will see what others add.
  bool is_sending_ LEAT_GUARDED_BY(mutex_) = false;
  WaitingList again_ LEAT_GUARDED_BY(mutex_);
  WaitingList new_ LEAT_GUARDED_BY(mutex_);
  WaitingList stopped_ LEAT_GUARDED_BY(mutex_);

  const SteadyClock clock_;
  std::optional<std::uint64_t> bytes_per_second_ LEAT_GUARDED_BY(mutex_);
  TimePoint paid_until_ LEAT_GUARDED_BY(mutex_);  // By the bytes sent so far.
  std::optional<TimerQueue::Id> timer_ LEAT_GUARDED_BY(mutex_);
  // Once there is a rate. Last: its thread ends before the rest dies.
  std::unique_ptr<TimerQueue> timers_ LEAT_GUARDED_BY(mutex_);
};

}  // namespace leat
