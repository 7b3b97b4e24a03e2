// Lends others at once the part of a link that one job leaves.
#pragma once
#include <span>
#include <vector>

#include "leat/tune/allocation.h"

namespace leat {

/// The recent reads of a claim.
struct LinkReading {
  double bytes_per_second = 0;
  /// One of its links is full: some claims wait for others.
  bool is_full = false;
};

/// Bytes a second to hold each claim to, in their order, from its recent reads.
///
/// Limits only jobs that run short, so that others keep what they need, to the
/// best rates by the objective, with all else as in `grants`. A job that needs
/// less than its part has headroom above its need, at least an equal part; so
/// has a claim that nothing bounds. For either, only what it reads and a little
/// more is kept, so that a job that goes slower than its figures say holds back
/// nobody. If nobody runs short, everybody may use the whole link. A claim gets
/// the least that its links allow; if none of these is bounded, it is not
/// bounded either.
///
/// `grants` have the present limits, and these are the answer unless others
/// gain something: the limits of a steady node rest.
///
/// REQUIRES: as many of each.
std::vector<double> lend_bandwidth(const NodeResources& node,
                                   std::span<const Claim> claims,
                                   std::span<const Grant> grants,
                                   std::span<const LinkReading> readings,
                                   const AllocationOptions& options);

}  // namespace leat
