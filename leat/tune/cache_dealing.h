// The cache of a node for its jobs.
#pragma once
#include "leat/tune/rate_problem.h"

namespace leat {

/// Bytes for each party, the best of those tried: a byte is best spent where it
/// saves most reading, rate * bytes of a sample / bytes of the dataset (SiloD,
/// EuroSys 2023), and rates and cache are found in turns, from several
/// beginnings; then bytes are moved between pairs, also for the time of threads
/// that is saved where samples are kept decoded. `threads` as RateProblem has
/// it.
Amounts best_cache(const RateProblem& jobs, const Amounts& threads);

}  // namespace leat
