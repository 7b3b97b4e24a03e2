// Segments in memory that the ranks of a node hand to each other.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "leat/base/clock.h"
#include "leat/base/result.h"
#include "leat/cache/file_ops.h"
#include "leat/cache/segment_files.h"

namespace leat {

/// Keeps segments in anonymous memory, and hands its descriptors to processes
/// of the same user that connect to a socket in `folder`. Also finds the
/// segments behind the other sockets there.
///
/// The folder belongs to one job of one user on one node; it is created if
/// necessary, and refused if others could write to it. A rank that dies takes
/// nothing with it: ranks that have opened its segments keep them, and one of
/// them takes them over. Its dead socket is removed by the first process to
/// find it: a rank of the same job, or any later one that sweeps.
///
/// `ops` must outlive it. One thread answers the others, until destruction. A
/// process that does not answer within `patience` is skipped until the next
/// time.
///
/// Errors:
///   kPermissionDenied  the folder is not ours alone
///   kUnavailable       no socket can be made there; the message says why
Result<std::unique_ptr<SegmentFiles>> open_segment_exchange(
    const std::string& folder, FileOps& ops,
    Nanoseconds patience = std::chrono::milliseconds(200));

}  // namespace leat
