#include "leat/index/build_turn.h"

#include <utility>

#include "leat/base/pause.h"

namespace leat {

Result<std::optional<CatalogueLock>> wait_for_turn(
    const std::string& path, const Launch& launch, const TurnTimes& times,
    const std::function<Result<Sight>()>& look, const std::stop_token& stop) {
  const SteadyClock clock;
  const TimePoint begin = clock.now();
  // A process that waited for a builder has let local rank 0 go first.
  bool may_build = launch.local.rank == 0;
  for (;;) {
    LEAT_TRY(const Sight sight, look());
    if (sight == Sight::kThere) return std::optional<CatalogueLock>();
    if (sight == Sight::kNothing) {
      LEAT_TRY(std::optional<CatalogueLock> lock,
               CatalogueLock::try_lock(path));
      may_build |= !lock || clock.now() - begin >= times.head_start;
      if (lock && may_build) {
        // It may have come between the look and the lock.
        LEAT_TRY(const Sight again, look());
        if (again == Sight::kThere) return std::optional<CatalogueLock>();
        return lock;
      }
    }
    if (!pause_for(times.pace, stop)) {
      return Error(ErrorCode::kCancelled, "stopped waiting for a catalogue");
    }
  }
}

}  // namespace leat
