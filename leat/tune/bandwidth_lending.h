// What one job leaves of a link, others have at once.
#pragma once
#include <span>
#include <vector>

#include "leat/tune/allocation.h"

namespace leat {

/// What a claim was lately seen to read.
struct LinkReading {
  double bytes_per_second = 0;
  /// Of one of its links nothing is left: some wait for others.
  bool is_full = false;
};

/// Bytes a second to hold each claim to, in their order, from what it was
/// lately seen to read.
///
/// Only those that run short are limited so that others keep what they need:
/// to what is best by the objective, with all else as in `grants`.
/// Whoever needs less has headroom above it, at least an equal part; a claim
/// that nothing bounds too. What is kept for either is what it reads and a
/// little more, so that a job that goes slower than its figures say holds back
/// nobody. Where nobody runs short, everybody may use the whole. A claim has
/// the least that its links allow; if none of these is bounded, neither is it.
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
