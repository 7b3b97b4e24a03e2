// The epochs of a rank that needs no data: its position moves as on the others.

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "leat/base/errors.h"
#include "leat/engine/loader/loader.h"
#include "leat/engine/loader/machine.h"

namespace leat {

Result<Loader::Iteration> Loader::begin_skipping() {
  Machine& m = *machine_;
  LEAT_TRY(const Machine::Visit visit, m.enter());
  Runs::Left old;  // Destroyed outside the lock.
  const MutexLock lock(m.mutex);
  LEAT_TRY_VOID(m.check_open());
  if (m.schedule->catalogue() == nullptr) {
    return invalid(
        "a rank that needs no data, of shards that the first epoch indexes, "
        "which it does not read: make an index before, with `leat index`");
  }
  // Jumps as begin() does, so that iterations have one number on all ranks.
  if (m.position.is_within_epoch()) {
    old = m.jump_to(m.position.epoch + 1, 0);
  } else if (m.position.has_ended || m.position.failure) {
    old = m.jump_to(m.position.epoch, m.position.at);
  } else {
    old = m.runs->end();  // A look at the first batch has begun to read.
  }
  LEAT_TRY_VOID(m.schedule->check_known(m.position.epoch));
  LEAT_TRY_VOID(
      check_next_of_mix(m.job, *m.schedule, m.position.epoch, m.position.at));
  return Iteration{++m.position.iteration};
}

Result<std::optional<BatchPlace>> Loader::skip(Iteration iteration) {
  Machine& m = *machine_;
  LEAT_TRY(const Machine::Visit visit, m.enter());
  const MutexLock lock(m.mutex);
  LEAT_TRY_VOID(m.check_current(iteration));
  if (m.position.failure) return *m.position.failure;
  if (m.position.has_ended) return std::optional<BatchPlace>();
  const std::uint64_t epoch = m.position.epoch;
  if (m.schedule->batches_of(epoch, m.position.at) == std::uint64_t{0}) {
    m.position.end_epoch(epoch + 1);
    return std::optional<BatchPlace>();
  }
  LEAT_TRY(const Steps left, m.schedule->steps_of(epoch, m.position.at));
  BatchPlace place = m.position.place();
  m.position.deliver(left.position_after(0), {});
  return std::optional(std::move(place));
}

}  // namespace leat
