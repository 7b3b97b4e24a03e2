// A store that asks a second time for what training waits for and is late.
#pragma once
#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <list>
#include <memory>

#include "leat/base/clock.h"
#include "leat/base/mutex.h"
#include "leat/metrics/metrics.h"
#include "leat/runtime/timer_queue.h"
#include "leat/store/layers/usual_time.h"
#include "leat/store/store_wrapper.h"

namespace leat {

/// Sends a duplicate of a read that takes far longer than reads of its size
/// usually do; the first good answer counts, and the other read is cancelled
/// (Dean and Barroso, "The Tail at Scale", CACM 56/2, 2013). It does so sooner
/// if the observer says that somebody waits for the read. The others have
/// duplicates only while half of what may be saved up is left, so that they
/// leave something for those that are waited for.
///
/// At most 2 % of all reads are sent again, and six; none of more than 1 MiB,
/// none before the usual time is known. A duplicate has memory of its own,
/// which is copied if it wins. One that is late itself gives way to another,
/// once, and sooner: a batch then waits for a read that was late twice. The
/// first reads have duplicates sooner too, since nothing was read ahead of
/// them.
///
/// Counts kStoreHedges and kStoreHedgesWon.
///
/// Threads: any. Lifetime: see Store; destruction waits for cancelled
///           duplicates. `metrics` may be null, or else outlives the store.
class HedgedStore final : public StoreWrapper {
 public:
  /// `may_send` says whether the service, and the window of reads in flight,
  /// have room for that many duplicates. Younger reads than `least_age` are not
  /// late.
  HedgedStore(std::unique_ptr<Store> inner,
              std::function<bool(std::size_t duplicates)> may_send,
              Metrics* metrics,
              Nanoseconds least_age = std::chrono::milliseconds(250));
  ~HedgedStore() override;

  void read(ReadRequest request, std::stop_token stop, ReadDone done) override;

 private:
  struct Flight;
  using FlightRef = std::shared_ptr<Flight>;
  using Flights = std::list<FlightRef>;

  void first_ended(const FlightRef& flight, Result<void> result);
  void send_second(const FlightRef& flight);
  void second_ended(const FlightRef& flight, Result<void> result);
  void hedge(const FlightRef& flight);
  void look();
  void look_again() LEAT_REQUIRES(mutex_);
  Flights late() LEAT_REQUIRES(mutex_);
  void land(bool is_good);
  static std::size_t size_class(std::size_t size_bytes);
  /// The ages at which a read is late; the longest time if that is unknown.
  struct Patience {
    Nanoseconds others{Nanoseconds::max()};
    Nanoseconds awaited{Nanoseconds::max()};
    /// Awaited, and one of the first, or a duplicate.
    Nanoseconds soonest{Nanoseconds::max()};
  };
  Patience patience_with(const UsualTime& usual) const;

  static constexpr std::size_t kSizes = 4;
  static constexpr double kAllowedAtFirst = 6;

  const std::function<bool(std::size_t)> may_send_;
  const Nanoseconds least_age_;
  Metrics* const metrics_;
  const SteadyClock clock_;

  Mutex mutex_;
  CondVar changed_;
  std::array<UsualTime, kSizes> usual_ LEAT_GUARDED_BY(mutex_);
  Flights flights_ LEAT_GUARDED_BY(mutex_);  // The oldest first.
  double allowed_ LEAT_GUARDED_BY(mutex_) = kAllowedAtFirst;
  std::size_t sent_ LEAT_GUARDED_BY(mutex_) = 0;  // First ones.
  std::size_t duplicates_ LEAT_GUARDED_BY(mutex_) = 0;
  bool is_ending_ LEAT_GUARDED_BY(mutex_) = false;
  bool will_look_ LEAT_GUARDED_BY(mutex_) = false;
  TimerQueue timers_;  // Last: its thread ends before the rest dies.
};

}  // namespace leat
