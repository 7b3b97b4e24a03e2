// The ranks of a job, which Python reaches, for index/job_scan.h.
#pragma once
#include <memory>

#include "leat/index/job_scan.h"

namespace leat {

/// Calls leat._job._scan_board.board(); null if the job has one process, or its
/// processes share no store. REQUIRES: the GIL is held.
std::shared_ptr<ScanBoard> scan_board();

}  // namespace leat
