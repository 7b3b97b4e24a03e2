// A store that retries where retrying may help.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>

#include "leat/base/mutex.h"
#include "leat/metrics/metrics.h"
#include "leat/runtime/timer_queue.h"
#include "leat/store/endpoint_notes.h"
#include "leat/store/layers/retry_judgement.h"
#include "leat/store/layers/silence.h"
#include "leat/store/store_wrapper.h"

namespace leat {

/// Retries operations that failed with a retryable error, after a back-off, for
/// as long as RetryOptions says. While nothing succeeds, it says so in the log:
/// see Silence.
///
/// Reads wait on a timer, so they hold no thread; list, write and stat block
/// anyway. Each read is answered once: with success, with the first error that
/// no retry can help, with the last error once patience or attempts are used
/// up, or with kCancelled as soon as `stop` fires, even in a back-off.
///
/// If the service asks for a wait (`Retry-After`), what it failed or refused is
/// not sent again before, however well others fare; patience bounds that too.
///
/// Out of descriptors or memory, a read is tried again for as long as one of
/// many that fails: others end and give back what they hold. It is no reason to
/// wait before the first read has succeeded.
///
/// During an outage the reads that failed are tried in turns, so that their
/// number does not multiply the requests. Each success after it wakes two of
/// them. Those whose turn has not come when patience ends are not tried again.
///
/// A request sent again carries `attempt` + 1. A write is repeated as a whole,
/// which is safe since it replaces the whole object.
///
/// Threads:  any; `done` runs on a thread of the inner store or on this one's.
/// Lifetime: destruction ends back-offs with kCancelled, and waits for the
///           inner store's outstanding answers. `metrics` may be null, else
///           outlives the store.
class RetryingStore final : public StoreWrapper {
 public:
  /// `seed` makes the jitter repeatable; give each process its own. With
  /// `notes`, a server that has never answered is not asked for longer than
  /// RetryOptions::start_patience, and one that swallows what it is sent than
  /// RetryOptions::silent_patience: it was never there. `not_before` tells
  /// until when the service asks for no request; null: it never does.
  RetryingStore(std::unique_ptr<Store> inner, RetryOptions options,
                std::uint64_t seed, Metrics* metrics,
                std::shared_ptr<const EndpointNotes> notes = nullptr,
                std::function<TimePoint()> not_before = nullptr);
  ~RetryingStore() override;

  void read(ReadRequest request, std::stop_token stop, ReadDone done) override;
  Result<ListPage> list(const ListRequest& request,
                        std::stop_token stop) override;
  Result<ObjectInfo> write(std::string_view key,
                           std::span<const std::byte> bytes,
                           std::stop_token stop) override;
  Result<ObjectInfo> stat(std::string_view key, std::stop_token stop) override;

 private:
  struct Flight;
  using FlightRef = std::shared_ptr<Flight>;

  using Flights = std::list<FlightRef>;

  void send(const FlightRef& flight);
  void hear(const FlightRef& flight, Result<void> result);
  void back_off(const FlightRef& flight);
  enum class Wake : std::uint8_t { kToTry, kToEnd };
  /// Ends its back-off; to try, no sooner than the service asks for.
  void wake(const FlightRef& flight, Wake why);
  void go_on(const FlightRef& flight);
  void finish(const FlightRef& flight, Result<void> result);
  void answered();

  TimePoint next_try(const RetryJudgement::Trouble& trouble, TimePoint now,
                     TimePoint from);
  template <class Call>
  auto try_again(Call call, const std::stop_token& stop) -> decltype(call());
  template <class Call>
  auto call_again(Call call, const std::stop_token& stop) -> decltype(call());

  RetryJudgement judgement_;
  Metrics* const metrics_;
  const SteadyClock clock_;
  std::stop_source closing_;

  mutable Mutex mutex_;
  CondVar changed_;
  std::size_t flights_ LEAT_GUARDED_BY(mutex_) = 0;
  Flights sleepers_ LEAT_GUARDED_BY(mutex_);  // In an outage.

  std::optional<Silence> silence_;
  TimerQueue timers_;  // Last: its thread ends before the rest is destroyed.
};

}  // namespace leat
