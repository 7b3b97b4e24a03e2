#include "leat/engine/loader/undelivered.h"

#include <memory>
#include <optional>
#include <utility>

#include "leat/engine/loader/machine.h"

namespace leat {

Result<bool> wait_for_next(Loader& loader, Loader::Iteration iteration,
                           Nanoseconds timeout) {
  Loader::Machine& m = *loader.machine_;
  LEAT_TRY(const Loader::Machine::Visit visit, m.enter());
  std::shared_ptr<EpochRun> run;
  std::shared_ptr<EpochRun> unused;
  {
    const MutexLock lock(m.mutex);
    LEAT_TRY_VOID(m.check_current(iteration));
    if (m.position.failure || m.position.has_ended) return true;
    if (Result<void> opened = m.runs->open(m.position, unused); !opened) {
      m.position.failure = opened.error();
      return true;
    }
    run = m.runs->current();
    m.begin_wait(run.get());
  }
  unused.reset();
  if (run == nullptr) {
    m.parts->wait_within(timeout);
    return false;
  }
  // The last batch is in the order log before there is another one.
  if (m.order_log != nullptr && !m.order_log->settle(timeout)) return false;
  (void)run->wait_within(timeout);
  return true;
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
