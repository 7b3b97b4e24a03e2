// Connects the tuner and the agent, which decide how much a loader may use.
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "leat/base/clock.h"
#include "leat/base/mutex.h"
#include "leat/engine/agent_link.h"
#include "leat/engine/loader/allowance.h"
#include "leat/engine/loader_tuning.h"
#include "leat/tune/decision.h"
#include "leat/tune/explain.h"
#include "leat/tune/observation.h"
#include "leat/tune/pace.h"

namespace leat {

/// Owns a rank's allowance, its tuner's thread and its link to the node's
/// agent.
///
/// Threads: any. Lifetime: what the hooks of tuner and link use must outlive
/// it, or the call of
///           end().
class Control {
 public:
  Control(Allowance allowance, TimePoint opened_at);
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

  RankLimits now() const;
  RankLimits usual() const;
  Share most() const;
  std::size_t most_threads() const;

  /// Takes what the agent, or the user, allows. apply() puts it into force.
  void allow(const Share& share);
  /// Takes the tuner's choice; apply() puts it into force.
  void choose(const Settings& settings);
  /// Computes the bounds for now on and calls `carry_out` with them, one call
  /// at a time. Holds no lock that now() takes.
  using CarryOut = std::function<void(const Allowance::InForce&)>;
  void apply(const CarryOut& carry_out);

  /// Starts the tuner's thread. Errors: as LoaderTuning::begin()
  Result<void> begin_tuning(LoaderTuning::Hooks hooks,
                            const std::string& trace);
  /// Adds the tuner's bounds to an observation.
  void add_bounds(Observation& seen) const;
  std::optional<Explanation> explanation() const;
  /// Decisions on the tuner's settings and on tiers, in no particular order.
  std::vector<Decision> decisions() const;

  void join_agent(AgentLinkOptions link);
  std::optional<Pace> pace() const;
  void set_pace(const Pace& pace);
  std::optional<Pace> pace_elsewhere() const;
  void set_pace_elsewhere(const Pace& pace);

  /// Ends the link and the tuner's thread; decisions stay. May be called twice,
  /// by one thread at a time.
  void end();

 private:
  void note(Setting setting,
            const std::optional<Allowance::InForce::Tier>& tier)
      LEAT_REQUIRES(mutex_);

  const TimePoint opened_at_;
  Mutex applying_;  // Taken before `mutex_`.
  mutable Mutex mutex_;
  Allowance allowance_ LEAT_GUARDED_BY(mutex_);
  std::deque<Decision> tier_decisions_ LEAT_GUARDED_BY(mutex_);
  std::optional<Pace> pace_ LEAT_GUARDED_BY(mutex_);
  std::optional<Pace> elsewhere_ LEAT_GUARDED_BY(mutex_);
  // Set while the loader is opened. Their threads call us, so they end first.
  std::unique_ptr<LoaderTuning> tuning_;  // Null: no tuner.
  std::unique_ptr<AgentLink> link_;       // Null: no agent is looked for.
};

}  // namespace leat
