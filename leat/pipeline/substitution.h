// Another sample takes the place of one that is passed over.
#pragma once
#include "leat/base/error.h"
#include "leat/pipeline/batch_work.h"
#include "leat/pipeline/run_context.h"
#include "leat/pipeline/sample_work.h"
#include "leat/plan/order.h"

namespace leat {

/// Whether there are samples whose ops tell that others take their rows.
bool may_pass_over(const RunContext& context);

/// Whether another sample takes the row of one that failed so: it is skipped,
/// or it is bad and the user said so; and not too many were tried. Never if the
/// steps keep their samples.
bool may_replace(const RunContext& context, const SampleWork& sample,
                 const Error& failed);

/// The row's sample, which has failed, is passed over from now on.
void exclude(const RunContext& context, SampleWork& sample);

/// Gives the row the next sample that is not known to be passed over; false if
/// too many were: then the row has failed.
/// REQUIRES: the order of the batch's epoch; the row's sample is passed over.
bool take_next(const RunContext& context, const EpochOrder& order,
               BatchWork& batch, SampleWork& sample);

}  // namespace leat
