// Batches that are taken of a loader and do not reach training.
#pragma once
#include "leat/base/clock.h"
#include "leat/base/error.h"
#include "leat/base/result.h"
#include "leat/engine/loader/loader.h"
#include "leat/engine/loader/position.h"

namespace leat {

/// For a caller that does something between the wait for a batch and the take,
/// such as to listen for signals: waits as Loader::next_within() does, and
/// takes nothing. False: nothing may be taken yet.
///
/// Errors: kInvalidArgument, as Loader::next_within()
Result<bool> wait_for_next(Loader& loader, Loader::Iteration iteration,
                           Nanoseconds timeout);

/// The caller took the batch of this place and could not hand it on. The
/// position goes back to it, for state(), and next_within() and peek_within()
/// fail with `why` until another iteration begins. Does nothing once one has,
/// or if no batch was taken. Batches that other threads took after it come once
/// more.
void put_back(Loader& loader, const BatchPlace& place, Error why);

/// The place of the next batch, for a caller that gets it elsewhere.
///
/// Errors: the one that next_within() would fail with
Result<BatchPlace> next_place(const Loader& loader);

}  // namespace leat
