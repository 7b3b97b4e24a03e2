// Lends others at once the part of a link that one job leaves.
#pragma once
#include <span>
#include <vector>

#include "leat/tune/allocation.h"

namespace leat {

/// The recent reads of a claim.
struct LinkReading {
  double bytes_per_second = 0;
  /// One of its links is full, so some claims wait for others.
  bool is_full = false;
};

/// Bytes a second to hold each claim to, in their order, from its recent reads.
///
/// Limits only jobs that are short of bandwidth, so that others keep what they
/// need, for the best rates by the objective, with everything else as in
/// `grants`. A job that needs less than its part gets headroom above its need,
/// at least an equal part; so does a claim without known bounds. For both, only
/// slightly more than they read is reserved, so that a job that is slower than
/// its figures holds nobody back. If no job is short, all may use the whole
/// link. A claim gets the least that its links allow; if none of them is
/// bounded, neither is the claim.
///
/// `grants` hold the present limits, which are returned unless others gain: the
/// limits of a steady node stay put.
///
/// REQUIRES: all have the same length.
std::vector<double> lend_bandwidth(const NodeResources& node,
                                   std::span<const Claim> claims,
                                   std::span<const Grant> grants,
                                   std::span<const LinkReading> readings,
                                   const AllocationOptions& options);

}  // namespace leat
