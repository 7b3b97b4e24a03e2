// A store that keeps the reads in flight within a window, and their bytes
// within a rate.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "leat/base/clock.h"
#include "leat/metrics/metrics.h"
#include "leat/store/layers/polite_window.h"
#include "leat/store/layers/read_queue.h"
#include "leat/store/store_wrapper.h"

namespace leat {

/// Lets at most `window` reads be in flight in the inner store and keeps the
/// others: see ReadQueue. A read that the inner store retries is in flight
/// until it is answered, so a store that fails is not sent new reads instead.
///
/// Counts kStoreWaitNanoseconds. Lists, writes and stats are not limited.
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
  /// Whether `more` reads may be sent beside those in flight: as many as the
  /// window has room for, or a sixteenth of the window even if it is full.
  bool has_room_for(std::size_t more) const;

  /// The bytes a second that reads may request from now on; nullopt: no limit
  /// but the window. At most a tenth of a second's worth can be saved up.
  /// REQUIRES: more than 0.
  void set_bytes_per_second(std::optional<std::uint64_t> rate);

  void read(ReadRequest request, std::stop_token stop, ReadDone done) override;

 private:
  /// Guarded by the queue's lock.
  struct Window final : Gate {
    TimePoint opens_at(TimePoint now) override;
    void passed(const ReadRequest& request, TimePoint now) override;

    std::size_t most = 1;
    std::size_t in_flight = 0;
    std::shared_ptr<const EndpointNotes> notes;
    std::optional<PoliteWindow> polite;
    std::optional<std::uint64_t> bytes_per_second;
    TimePoint paid_until;  ///< By the bytes sent so far.
  };

  void send(ReadQueue::Waiting read, TimePoint now);
  void hear(const ReadDone& done, Result<void> result);

  Metrics* const metrics_;
  const SteadyClock clock_;
  Window window_;
  ReadQueue queue_;
};

}  // namespace leat
