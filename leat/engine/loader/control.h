// The tuner and the agent say how much a loader may use: both ends.
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

/// Owns the allowance of a rank, its tuner's thread and its link to the agent
/// of the node.
///
/// Threads:  any.
/// Lifetime: what the hooks of tuner and link use outlives it, or end() was
///           called.
class Control {
 public:
  Control(Allowance allowance, TimePoint opened_at);
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

  RankLimits now() const;
  RankLimits usual() const;
  Share most() const;
  std::size_t most_threads() const;

  /// Takes what the agent, or the user, allows. apply() brings it into force.
  void allow(const Share& share);
  /// Takes what the tuner chose: the same.
  void choose(const Settings& settings);
  /// Works out what is in force from now on, and calls `carry_out` with it, one
  /// call at a time: no lock is held that now() takes.
  using CarryOut = std::function<void(const Allowance::InForce&)>;
  void apply(const CarryOut& carry_out);

  /// Starts the tuner's thread. Errors: as LoaderTuning::begin()
  Result<void> begin_tuning(LoaderTuning::Hooks hooks,
                            const std::string& trace);
  /// Adds to an observation the bounds that the tuner has.
  void add_bounds(Observation& seen) const;
  std::optional<Explanation> explanation() const;
  /// Decisions on the tuner's settings and on tiers; in no order.
  std::vector<Decision> decisions() const;

  void join_agent(AgentLinkOptions link);
  std::optional<Pace> pace() const;
  void set_pace(const Pace& pace);
  std::optional<Pace> pace_elsewhere() const;
  void set_pace_elsewhere(const Pace& pace);

  /// Ends the link and the tuner's thread; what was decided stays. May be
  /// called twice, by one thread at a time.
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
  // Set while the loader is opened. Their threads call us: they end first.
  std::unique_ptr<LoaderTuning> tuning_;  // Null: nobody tunes.
  std::unique_ptr<AgentLink> link_;       // Null: no agent is looked for.
};

}  // namespace leat
