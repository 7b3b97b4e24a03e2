// Whole threads of a node for its jobs.
#pragma once
#include "leat/tune/rate_problem.h"

namespace leat {

/// Threads go one by one to the job in which the next gains most. This is
/// optimal as long as nothing but threads runs short, since a rate is concave
/// in its threads. If reads run short too, threads are moved between pairs for
/// as long as that helps. Each party gets at least the threads that its floor
/// needs.
Amounts whole_threads(const RateProblem& jobs, const Amounts& cache);

}  // namespace leat
