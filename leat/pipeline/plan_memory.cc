#include "leat/pipeline/plan_memory.h"

#include "leat/base/errors.h"
#include "leat/base/units.h"

namespace leat {

Result<Reservation> PlanMemory::reserve(std::uint64_t bytes,
                                        std::string_view what,
                                        std::string_view remedy,
                                        const std::stop_token& stop) {
  if (held_bytes_ + bytes > budget_.capacity_bytes()) {
    return exhausted(
        "{} need {} on top of {} already held for it: {} bytes at once, but "
        "{}, or lower the batch size{}",
        what, format_bytes(bytes), format_bytes(held_bytes_),
        held_bytes_ + bytes, budget_.allows_in_words(held_bytes_ + bytes),
        remedy);
  }
  return budget_.reserve(bytes, stop);
}

}  // namespace leat
