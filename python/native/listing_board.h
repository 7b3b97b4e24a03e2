// The nodes of a job, which Python reaches, for index/job_listing.h.
#pragma once
#include <memory>

#include "leat/index/job_listing.h"

namespace leat {

/// Calls leat._job._listing_board.board(); null if the job has one node, or its
/// processes share no store. REQUIRES: the GIL is held.
std::shared_ptr<ListingBoard> listing_board();

}  // namespace leat
