// A training step that takes time and no CPU.
#pragma once
#include <stop_token>

#include "leat/base/clock.h"

namespace leat {

/// Pretends to train on a batch: the accelerator is busy, this CPU is not.
/// Blocks for `step_time`, or until `stop`.
void emulate_step(Nanoseconds step_time, const std::stop_token& stop);

}  // namespace leat
