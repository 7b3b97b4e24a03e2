// How many requests a second a store bears that asks for fewer.
#pragma once
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "leat/base/clock.h"
#include "leat/base/mutex.h"
#include "leat/store/layers/pace_memory.h"
#include "leat/store/layers/pace_state.h"

namespace leat {

/// The pace of requests to one service, by the rule of PaceState. Processes of
/// a node that share it find its rate together, and send at that rate together.
///
/// Uses no clock; is told the time. Threads: any.
class RequestPace {
 public:
  using Episode = PaceState::Episode;

  /// For this process alone.
  RequestPace() = default;
  /// Shared: see PaceMemory. Begins with a slow start, or takes part in it.
  RequestPace(const std::string& folder, std::string_view service);

  /// Takes the next turn to send a request: `now`, or later. Until then others
  /// may take turns, which are later.
  TimePoint take_turn(TimePoint now);

  /// A reply has come to a request that was sent then.
  void heard(bool is_throttled, TimePoint sent, TimePoint now);

  /// False: requests may be sent at once. Takes no lock.
  bool has_turns() const { return memory_.rate().has_value(); }
  /// Nullopt: the service is not known to throttle.
  std::optional<double> requests_per_second() const;
  /// Since the service throttles, it has held requests back within the last
  /// second.
  bool holds(TimePoint now) const;
  bool is_shared() const { return memory_.is_shared(); }
  /// The latest ones of this object's life, the oldest first.
  std::vector<Episode> episodes() const;

 private:
  void note_episode(const PaceState& state) const;

  const PaceMemory memory_;
  mutable Mutex mutex_;
  // Those that ended before this object was made, and have been noted.
  mutable std::uint64_t noted_ LEAT_GUARDED_BY(mutex_) = 0;
  mutable std::deque<Episode> episodes_ LEAT_GUARDED_BY(mutex_);
};

}  // namespace leat
