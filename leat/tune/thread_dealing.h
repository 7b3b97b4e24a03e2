// Whole threads of a node for its jobs.
#pragma once
#include "leat/tune/rate_problem.h"

namespace leat {

/// Given one by one to where the next gains most, which is optimal as long as
/// nothing but threads runs short, since a rate is concave in its threads;
/// where reads run short too, threads are moved between pairs for as long as
/// that helps. At least what the floor needs for each party.
Amounts whole_threads(const RateProblem& jobs, const Amounts& cache);

}  // namespace leat
