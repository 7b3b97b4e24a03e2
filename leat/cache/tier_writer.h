// The thread that carries out what a cache has decided.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <stop_token>
#include <thread>
#include <vector>

#include "leat/base/clock.h"
#include "leat/base/mutex.h"
#include "leat/cache/cache_decisions.h"
#include "leat/cache/cache_tiers.h"
#include "leat/cache/fetch_turns.h"
#include "leat/cache/plan_clock.h"
#include "leat/cache/write_queue.h"
#include "leat/metrics/metrics.h"

namespace leat {

/// How often to look for other writers and their writes: until a rank knows
/// that another has fetched a record, it would fetch it again.
struct TierWriterOptions {
  Nanoseconds refresh_every = std::chrono::seconds(1);
  Nanoseconds catch_up_every = std::chrono::milliseconds(50);
};

/// Carries out the queued steps in order, and looks at what other writers
/// do.
///
/// Threads:  any call write_now(); the rest runs on a thread of its own,
///           leat-cache-write.
/// Lifetime: what Parts names outlives it. Destruction writes what is queued.
class TierWriter {
 public:
  struct Parts {
    std::vector<CacheTier>& tiers;
    WriteQueue& queue;
    CacheDecisions& decisions;
    const PlanClock& clock;
    FetchTurns* turns;  ///< May be null.
    JobBoard* board;    ///< May be null.
    Metrics* metrics;   ///< May be null.
  };
  TierWriter(const Parts& parts, TierWriterOptions options);

  /// Carries out `write` on this thread, after everything queued before it,
  /// since steps are done in the order in which they were decided.
  void write_now(CacheWrite write);

 private:
  void run(const std::stop_token& stop);
  bool write_next() LEAT_REQUIRES(turn_);
  void write_one(CacheWrite& write) LEAT_REQUIRES(turn_);
  void do_steps(const CacheWrite& write) LEAT_REQUIRES(turn_);
  void put(const TierStep& step, const CacheWrite& write) LEAT_REQUIRES(turn_);
  void drop(std::size_t level, const RecordKey& key);
  void move(const TierStep& step, const CacheWrite& write) LEAT_REQUIRES(turn_);
  void insert(std::size_t level, const RecordKey& key,
              std::span<const std::byte> bytes, AccessTime now)
      LEAT_REQUIRES(turn_);
  bool insert_later(std::size_t level, const RecordKey& key,
                    std::span<const std::byte> bytes) LEAT_REQUIRES(turn_);
  void see_others();
  void follow_jobs();
  void follow_allowance() LEAT_REQUIRES(turn_);

  const Parts to_;
  const TierWriterOptions options_;
  Mutex turn_;                ///< Held while the queue is written; taken first.
  TimePoint follow_after_{};  ///< Used by the thread.
  std::jthread thread_;       // Last: joined before the rest dies.
};

}  // namespace leat
