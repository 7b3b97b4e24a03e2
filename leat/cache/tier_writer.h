// The thread that carries out what a cache has decided.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
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
  /// A write with what is left of it.
  struct Task {
    CacheWrite write;
    bool is_queued = false;  ///< It came from the queue, which hears its end.
    /// The tier whose allowance it follows.
    std::optional<std::size_t> allowed = std::nullopt;
    std::size_t next_step = 0;
    bool is_waiting = false;  ///< The next step has found no room.
  };

  void run(const std::stop_token& stop);
  bool write_next() LEAT_REQUIRES(turn_);
  bool take_next() LEAT_REQUIRES(turn_);
  void carry_out() LEAT_REQUIRES(turn_);
  void go_on(Task task) LEAT_REQUIRES(turn_);
  void end(Task& task) LEAT_REQUIRES(turn_);
  bool do_steps(Task& task) LEAT_REQUIRES(turn_);
  bool do_step(const TierStep& step, const CacheWrite& write, bool may_wait)
      LEAT_REQUIRES(turn_);
  bool put(const TierStep& step, const CacheWrite& write, bool may_wait)
      LEAT_REQUIRES(turn_);
  void drop(std::size_t level, const RecordKey& key);
  bool move(const TierStep& step, const CacheWrite& write, bool may_wait)
      LEAT_REQUIRES(turn_);
  bool insert(std::size_t level, const RecordKey& key,
              std::span<const std::byte> bytes, AccessTime now, bool may_wait)
      LEAT_REQUIRES(turn_);
  void see_others();
  void follow_jobs();
  void follow_allowance(std::size_t first_level) LEAT_REQUIRES(turn_);

  const Parts to_;
  const TierWriterOptions options_;
  Mutex turn_;  ///< Held while the queue is written; taken first.
  /// All that is under way, the next one last; empty between two turns.
  std::vector<Task> tasks_ LEAT_GUARDED_BY(turn_);
  TimePoint follow_after_{};  ///< Used by the thread.
  std::jthread thread_;       // Last: joined before the rest dies.
};

}  // namespace leat
