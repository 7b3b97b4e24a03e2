// A store that sends no more requests than the service takes.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>

#include "leat/base/clock.h"
#include "leat/metrics/metrics.h"
#include "leat/store/layers/read_queue.h"
#include "leat/store/layers/request_pace.h"
#include "leat/store/store_wrapper.h"

namespace leat {

/// Sends reads at the rate that RequestPace finds, and keeps the others: see
/// ReadQueue. If a read had to wait because the inner store answered
/// kThrottled, its observer is told.
///
/// Counts each request that it sends: kStoreReads, kStoreReadBytes,
/// kStoreReadErrors, kStoreThrottled, kStoreInFlight, kStoreReadNanoseconds,
/// kStoreLists. Lists, writes and stats are not held back.
///
/// Threads: any. Lifetime: see Store; aborts if destroyed with reads waiting.
///           `metrics` may be null, or else outlives the store.
class PacedStore final : public StoreWrapper {
 public:
  PacedStore(std::unique_ptr<Store> inner, Metrics* metrics,
             std::shared_ptr<RequestPace> pace);

  /// Lives on after the store.
  std::shared_ptr<const RequestPace> pace() const { return pace_; }

  void read(ReadRequest request, std::stop_token stop, ReadDone done) override;
  Result<ListPage> list(const ListRequest& request,
                        std::stop_token stop) override;

 private:
  /// A turn is taken before its time comes, so that of several processes which
  /// wait for one only that wakes whose turn it is.
  struct Turns final : Gate {
    explicit Turns(RequestPace& of) : pace(of) {}
    TimePoint opens_at(TimePoint now) override {
      if (!turn || !pace.has_turns()) turn = pace.take_turn(now);
      return *turn;
    }
    void passed(const ReadRequest&, TimePoint) override { turn.reset(); }
    RequestPace& pace;
    std::optional<TimePoint> turn;
  };

  void send(ReadQueue::Waiting read, TimePoint now);
  void hear(std::uint64_t size_bytes, TimePoint sent, const ReadDone& done,
            Result<void> result);
  void count(std::uint64_t size_bytes, TimePoint sent, TimePoint now,
             const Result<void>& result);

  Metrics* const metrics_;
  const SteadyClock clock_;
  const std::shared_ptr<RequestPace> pace_;
  Turns turns_{*pace_};
  ReadQueue queue_;
};

}  // namespace leat
