#include "leat/engine/loader/undelivered.h"

#include <optional>
#include <utility>

#include "leat/engine/loader/machine.h"

namespace leat {

Result<void> wait_for_next(Loader& loader, Loader::Iteration iteration,
                           Nanoseconds timeout) {
  LEAT_TRY(const Loader::Machine::Visit visit, loader.machine_->enter());
  LEAT_TRY_VOID(loader.machine_->wait_within(iteration, timeout));
  return {};
}

void put_back(Loader& loader, const BatchPlace& place, Error why) {
  if (place.iteration == 0) return;
  Loader::Machine& m = *loader.machine_;
  std::optional<Error> before;  // Destroyed outside the lock.
  const MutexLock lock(m.mutex);
  if (!m.position.go_back_to(place)) return;
  m.expect_start();
  if (m.is_closed) return;
  before = std::exchange(m.position.failure, std::move(why));
}

Result<BatchPlace> next_place(const Loader& loader) {
  const Loader::Machine& m = *loader.machine_;
  const MutexLock lock(m.mutex);
  if (m.position.failure) return *m.position.failure;
  return m.position.place();
}

}  // namespace leat
