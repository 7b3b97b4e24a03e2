// Divides the cache of a node among its jobs.
#pragma once
#include "leat/tune/rate_problem.h"

namespace leat {

/// Bytes for each party, the best of those tried. A byte belongs where
/// it saves most reading, rate * bytes of a sample / bytes of the
/// dataset (SiloD, EuroSys 2023), so rates and cache are found in turns,
/// from several beginnings; then bytes are moved between pairs, also for
/// the thread time that decoded samples save. For `threads` see
/// RateProblem.
Amounts best_cache(const RateProblem& jobs, const Amounts& threads);

}  // namespace leat
